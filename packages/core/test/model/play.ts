import { compare, compareChanges } from './compare.ts'
import { changeByHand, discard, holdOrRelease, pass, purge, replay, requeue, reschedule } from './perform-operations.ts'
import { answer, crash, cut, expire, goOn, look, ownSlots } from './perform-relays.ts'
import { endWrite, place, write } from './perform-writes.ts'
import { checkNothingWaits, checkTheEnd, drain, heal, settleDown } from './rest.ts'
import type { Script, Setup, Step } from './script.ts'
import { closeWorld, openWorld, startRelay, type Theatre, type World } from './world.ts'

export interface Played {
  /** What must not be, or undefined. */
  readonly wrong: string | undefined
  /** Numbered steps in plain words. */
  readonly story: readonly string[]
  readonly steps: number
}

/** Plays one script against the engine and the model, up to the first thing that must not be. */
export async function play(theatre: Theatre, { setup, steps }: Script): Promise<Played> {
  const world = await openWorld(theatre, setup)
  try {
    world.story.push(`     ${setupWords(setup)}`)
    world.tell('relay A starts')
    await startRelay(world)
    for (const step of steps) {
      const told = world.story.length
      await perform(world, step)
      if (world.story.length > told && !byRelays.has(step.do)) world.changes += 1
      await compareChanges(world)
      if (world.wrong !== undefined) return result(world)
    }
    for (const end of [heal, drain, checkTheEnd]) {
      await end(world)
      await compare(world)
    }
    return result(world)
  } finally {
    await closeWorld(world)
  }
}

/** Steps in which nobody but the relays can change an event: what they send says whether they did. */
const byRelays = new Set<Step['do']>([
  'look',
  'go on',
  'answer',
  'beat',
  'start',
  'leave',
  'expire',
  'crash',
  'cut',
  'skew',
  'rest',
])

function result({ wrong, story }: World): Played {
  return { wrong, story, steps: story.filter((line) => /^ *\d+\./.test(line)).length }
}

function setupWords({ maxRun, findLimit, maxAttempts, onExhausted, retain }: Setup): string {
  return `runs of ${maxRun}, ${findLimit} arrivals in a find, ${maxAttempts} attempts, then ${onExhausted}; published events are ${retain ? 'kept' : 'deleted'}`
}

async function perform(world: World, step: Step): Promise<void> {
  switch (step.do) {
    case 'write':
      return write(world, step)
    case 'place':
      return place(world, step)
    case 'commit':
    case 'roll back':
      return endWrite(world, step)
    case 'look':
      return look(world, step)
    case 'go on':
      return goOn(world, step)
    case 'answer':
      return answer(world, step)
    case 'beat':
    case 'start':
    case 'leave':
      return ownSlots(world, step)
    case 'expire':
      return expire(world, step)
    case 'crash':
      return crash(world, step)
    case 'cut':
      return cut(world, step)
    case 'pass':
      world.tell(`${step.hours} hours pass`)
      return pass(world, step.hours)
    case 'skew':
      world.tell(`the clock of the relays' machine is set to ${step.hours} hours from the truth`)
      world.theatre.clock.skew(step.hours * 3_600_000)
      return
    case 'hold':
    case 'release':
      return holdOrRelease(world, step)
    case 'requeue':
      return requeue(world, step)
    case 'discard':
      return discard(world, step)
    case 'replay':
      return replay(world, step)
    case 'reschedule':
      return reschedule(world, step)
    case 'purge':
      return purge(world)
    case 'delete':
    case 'revive':
    case 'fail':
      return changeByHand(world, step)
    case 'rest':
      world.tell('everything on its way arrives, and the relays look until nothing is left to do')
      await settleDown(world)
      checkNothingWaits(world)
      return
  }
}
