import type { StepOf } from './script.ts'
import type { SteppedRelay } from './stepped-relay.ts'
import { numbers, type Answer, type Call } from './broker.ts'
import { startRelay, type World } from './world.ts'

const mostRelays = 2

export function pick<T>(from: readonly T[], index: number): T | undefined {
  return from[index % Math.max(1, from.length)]
}

export async function look(world: World, { relay: index, hold }: StepOf<'look'>): Promise<void> {
  const relay = pick(world.relays, index)
  if (relay === undefined || relay.looking) return
  if (hold === undefined) world.tell(`relay ${relay.name} looks`)
  else {
    const what =
      hold.where === 'unsent' ? `its ${hold.stretch} is slow to be sent` : `the answer to its ${hold.stretch} is slow`
    world.tell(`relay ${relay.name} looks, and ${what}`)
    relay.wire.next(hold.stretch, hold.where)
  }
  void relay.look()
  await world.traffic.rest()
  if (hold !== undefined) relay.wire.next(hold.stretch, undefined)
}

export async function goOn(world: World, { relay: index, held: which }: StepOf<'go on'>): Promise<void> {
  const relay = pick(
    world.relays.filter(({ wire }) => wire.held.length > 0),
    index,
  )
  const held = relay === undefined ? undefined : pick(relay.wire.held, which)
  if (relay === undefined || held === undefined) return
  world.tell(`the ${held.stretch} of relay ${relay.name} ${held.where === 'unsent' ? 'is sent' : 'is answered'}`)
  relay.wire.release(held)
  await world.traffic.rest()
}

export async function answer(world: World, step: StepOf<'answer'>): Promise<void> {
  const call = pick(world.broker.calls, step.call)
  const relay = world.relays.find(({ name }) => name === call?.relay)
  if (call === undefined || relay === undefined) return
  const given = answerOf(call, step)
  world.tell(`the broker answers relay ${call.relay}: ${words(call, given)}${fateWords[step.settle ?? 'at once']}`)
  const retried = relay.wire.reached('settle')
  relay.wire.next('settle', step.settle)
  world.broker.answer(call, given)
  await world.traffic.rest()
  if (step.settle === 'lost' && !relay.wire.armed('settle')) {
    await retried
    await world.traffic.rest()
  }
  relay.wire.next('settle', undefined)
}

const fateWords = {
  'at once': '',
  unsent: '; its settle is slow to be sent',
  unanswered: '; the answer to its settle is slow',
  lost: '; the answer to its settle is lost with the connection',
}

function answerOf({ events }: Call, { acknowledged, failure, beyond }: StepOf<'answer'>): Answer {
  if (failure === undefined) return { acknowledged: events.length, beyond: 0 }
  const taken = Math.min(acknowledged, events.length - 1)
  return { acknowledged: taken, failure, beyond: Math.min(beyond, events.length - taken) }
}

function words({ events }: Call, { acknowledged, failure, beyond }: Answer): string {
  const taken = events.slice(0, acknowledged)
  if (failure === undefined) return `${numbers(taken)} acknowledged`
  const next = numbers(events.slice(acknowledged, acknowledged + 1))
  const lost = events.slice(acknowledged, acknowledged + beyond)
  const arrived =
    lost.length > 0 && (failure === 'unknown' || failure === 'thrown') ? `, although ${numbers(lost)} arrived` : ''
  return `${taken.length > 0 ? `${numbers(taken)} acknowledged, ` : ''}${next} ${failure}${arrived}`
}

export async function ownSlots(world: World, step: StepOf<'beat' | 'start' | 'leave'>): Promise<void> {
  if (step.do === 'start') {
    if (world.relays.length >= mostRelays) return
    world.tell(`relay ${String.fromCharCode(65 + world.started)} starts`)
    await startRelay(world)
    return
  }
  const relay = pick(world.relays, step.relay)
  if (relay === undefined) return
  if (step.do === 'beat') {
    world.tell(`relay ${relay.name} renews its lease`)
    relay.beat()
    await world.traffic.rest()
    return
  }
  const busy = relay.looking || relay.wire.held.length > 0 || callsOf(world, relay).length > 0
  if (busy || world.relays.length === 1) return
  world.tell(`relay ${relay.name} is stopped`)
  await relay.leave()
  await world.traffic.rest()
  world.relays.splice(world.relays.indexOf(relay), 1)
}

export async function expire(world: World, step: StepOf<'expire'>): Promise<void> {
  const registered = [...world.unburied, ...world.relays.map(({ engine }) => engine.ownership.relay)]
  const id = pick(registered, step.relay)
  if (id === undefined) return
  const living = world.relays.find(({ engine }) => engine.ownership.relay === id)
  world.tell(`the lease of ${living === undefined ? 'a dead relay' : `relay ${living.name}`} is over in the database`)
  await bury(world, id)
}

/** For so long that nobody waits for it to come back. */
export async function bury(world: World, id: string): Promise<void> {
  await world.theatre.hand.query(
    `update outbox.relays set expires_at = clock_timestamp() - interval '20 days' where id = $1`,
    [id],
  )
  const index = world.unburied.indexOf(id)
  if (index !== -1) world.unburied.splice(index, 1)
}

export async function crash(world: World, { relay: index, arrived }: StepOf<'crash'>): Promise<void> {
  const relay = pick(world.relays, index)
  if (relay === undefined) return
  const calls = callsOf(world, relay)
  const lost = calls.map((call) => ({ call, arrived: Math.min(arrived, call.events.length) }))
  const reached = lost.flatMap(({ call, arrived: count }) => call.events.slice(0, count))
  world.tell(
    `relay ${relay.name} dies${calls.length === 0 ? '' : `; of what it was publishing ${numbers(reached)} arrived`}`,
  )
  for (const each of lost) world.broker.orphan(each.call, each.arrived)
  world.crashes += 1
  world.unburied.push(relay.engine.ownership.relay)
  world.relays.splice(world.relays.indexOf(relay), 1)
  relay.die()
  await world.traffic.rest()
}

export async function cut(world: World, { relay: index, stretch }: StepOf<'cut'>): Promise<void> {
  const relay = pick(world.relays, index)
  if (relay === undefined) return
  const heldSettle = stretch === 'settle' && relay.wire.held.some((held) => held.stretch === 'settle')
  world.tell(`relay ${relay.name} loses the connection of its ${stretch}`)
  const retried = relay.wire.reached('settle')
  relay.wire.cut(stretch)
  if (heldSettle) await retried
  await world.traffic.rest()
}

function callsOf({ broker }: World, { name }: SteppedRelay): Call[] {
  return broker.calls.filter(({ relay }) => relay === name)
}
