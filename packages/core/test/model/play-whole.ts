import type { Failure } from '../../src/contract/publisher.ts'
import type { Relay } from '../../src/relay/relay.ts'
import type { Mood, WholeStep } from './whole-script.ts'
import type { WholeTheatre } from './whole-theatre.ts'

/** An event as its writer knows it. */
export interface Written {
  readonly eventId: string
  readonly lane: string
  /** Events of its lane whose commit was answered before its INSERT was sent, or that stand before it in its transaction. */
  readonly before: readonly Written[]
  fate: 'open' | 'committed' | 'rolled back'
}

/** The broker's side of a script: what arrived in which order, and what it will say next. */
export interface Arrivals {
  readonly ids: string[]
  mood: Mood
  events: number
  /** Answers that leave it open whether the events arrived, and refusals of single events. */
  doubts: number
  refusals: number
}

/** One script that is being played. */
export interface WholeScene {
  readonly theatre: WholeTheatre
  readonly arrivals: Arrivals
  /** What the transaction of each writer has written. */
  readonly open: readonly Written[][]
  readonly relays: readonly Relay[]
  readonly written: Written[]
  readonly story: string[]
  /** Something happened that explains a second delivery. */
  disturbed: boolean
}

/** How the broker answers for one event. */
export function answerFor(arrivals: Arrivals, eventId: string): Failure | undefined {
  const mood = arrivals.events > 0 ? arrivals.mood : 'takes'
  arrivals.events -= 1
  if (mood === 'takes' || mood === 'loses the answer') arrivals.ids.push(eventId)
  if (mood === 'takes') return undefined
  if (mood === 'rejected') arrivals.refusals += 1
  else arrivals.doubts += 1
  return { kind: mood === 'loses the answer' ? 'unknown' : mood, cause: new Error(`the broker: ${mood}`) }
}

function writerOf({ theatre, open }: WholeScene, writer: number): [WholeTheatre['writers'][number], Written[]] {
  const [client, own] = [theatre.writers[writer], open[writer]]
  if (client === undefined || own === undefined) throw new Error(`there is no writer ${writer}`)
  return [client, own]
}

async function insert(scene: WholeScene, writer: number, topic: string, key: string): Promise<void> {
  const { written, theatre } = scene
  const [client, own] = writerOf(scene, writer)
  if (own.length === 0) await client.query('begin')
  const lane = `${topic}/${key}`
  const before = written.filter((each) => each.lane === lane && (own.includes(each) || each.fate === 'committed'))
  const { eventId } = await theatre.outbox.enqueue(client, { topic, key, payload: written.length + 1 })
  const event: Written = { eventId, lane, before, fate: 'open' }
  own.push(event)
  written.push(event)
}

async function end(scene: WholeScene, writer: number, how: 'commit' | 'rollback'): Promise<void> {
  const [client, own] = writerOf(scene, writer)
  if (own.length === 0) return
  await client.query(how)
  for (const event of own.splice(0)) event.fate = how === 'commit' ? 'committed' : 'rolled back'
}

export async function perform(scene: WholeScene, step: WholeStep): Promise<void> {
  const { theatre, relays, arrivals } = scene
  const { operator } = theatre
  scene.story.push(JSON.stringify(step))
  switch (step.do) {
    case 'write': {
      const writer = scene.open.findIndex((own) => own.length === 0)
      if (writer === -1) return
      for (const key of step.keys) await insert(scene, writer, step.topic, key)
      return end(scene, writer, 'commit')
    }
    case 'open':
      return insert(scene, step.writer, step.topic, step.key)
    case 'commit':
      return end(scene, step.writer, 'commit')
    case 'roll back':
      return end(scene, step.writer, 'rollback')
    case 'mood':
      Object.assign(arrivals, { mood: step.mood, events: step.events })
      return
    case 'restart': {
      const relay = relays[step.relay]
      await relay?.stop()
      await relay?.start()
      return
    }
    case 'expire':
      scene.disturbed = true
      await theatre.pool.query(
        `update outbox.relays set expires_at = clock_timestamp() - interval '1 hour' where id = (select id from outbox.relays order by started_at offset $1 limit 1)`,
        [step.relay],
      )
      return
    case 'cut':
      scene.disturbed = true
      await theatre.cut(step.session)
      return
    case 'hold':
      await operator.hold({ topic: step.topic }, { reason: 'the script' })
      return
    case 'release':
      await operator.release({ topic: step.topic })
      return
    case 'requeue':
      await operator.requeue({ status: 'failed' })
      return
    case 'wait':
      await theatre.finds(step.finds)
  }
}

/** How long relays may take for what is left, once everything is well: the lease of a dead one, and room to spare. */
const longestRestMs = 15_000

/** Everything heals, and the relays publish what is left. What they never look at again stays where it is. */
export async function healWhole(scene: WholeScene): Promise<void> {
  const { theatre, arrivals } = scene
  for (const writer of scene.open.keys()) await end(scene, writer, 'commit')
  for (const topic of ['a', 'b']) await theatre.operator.release({ topic })
  arrivals.events = 0
  const until = performance.now() + longestRestMs
  while (performance.now() < until && (await theatre.left()) > 0) await theatre.finds(2)
}
