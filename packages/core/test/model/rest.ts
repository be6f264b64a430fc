import { slotOf } from '../../src/contract/lane.ts'
import { numbers } from './broker.ts'
import { isCommitted, type Known } from './model.ts'
import { pass } from './perform-operations.ts'
import { bury } from './perform-relays.ts'
import { end } from './perform-writes.ts'
import type { SteppedRelay } from './stepped-relay.ts'
import { startRelay, sweepIntervalMs, type World } from './world.ts'

/** Looks until a relay has come to rest; far more than any script needs. */
const mostLooks = 300

/** What is held goes on, and the relays look until there is nothing to do; the broker answers nothing meanwhile. */
export async function settleDown(world: World): Promise<void> {
  await releaseAll(world)
  // What one gives up in its turn another takes in the next.
  for (let round = 0; round < world.relays.length; round++) {
    for (const relay of world.relays) {
      relay.beat()
      await world.traffic.rest()
    }
  }
  await lookAround(world)
}

/** The relays look until they found nothing and changed nothing. */
async function lookAround(world: World): Promise<void> {
  for (let quiet = false, looks = 0; !quiet && world.wrong === undefined; looks++) {
    const { changes } = world
    let worked = false
    for (const relay of world.relays) {
      worked = (await relay.look()) || worked
      await world.traffic.rest()
    }
    quiet = !worked && world.changes === changes
    if (looks > mostLooks) world.wrong ??= 'the relays look for ever and find no rest'
  }
}

async function releaseAll(world: World): Promise<void> {
  for (const { wire } of world.relays) {
    while (wire.held.length > 0) {
      for (const held of wire.held) wire.release(held)
      await world.traffic.rest()
    }
  }
}

/** Every lane of which something may be delivered is on its way, or somebody can say why it is not. */
export function checkNothingWaits(world: World): void {
  for (const [lane, run] of world.model.runs()) {
    const [head] = run
    if (head === undefined || isHandmade(world, lane)) continue
    const owner = world.relays.find(({ engine }) => engine.slots.epoch(slotOfLane(world, lane)) !== undefined)
    if (owner === undefined || isExplained(world, owner, head)) continue
    world.wrong ??= `event ${head.number} waits, and nothing stops it`
  }
}

function isExplained(world: World, { name, engine }: SteppedRelay, head: Known): boolean {
  const { broker, scene } = world
  if (broker.calls.some((call) => call.relay === name && call.run.lane.id === scene.laneIds.get(head.lane))) return true
  if (!engine.breakers.closed(head.topic) || engine.slots.isolated(slotOfLane(world, head.lane))) return true
  const lane = engine.lanes.get(scene.laneIds.get(head.lane) ?? '')
  // What is before such an event now, because it was replayed or committed late, waits with it.
  const unknown = broker.told.some(
    ({ relay, event, kind }) =>
      relay === name && kind === 'unknown' && event.lane === head.lane && event.status === 'pending',
  )
  return lane !== undefined && lane.pauseUntil > performance.now() && unknown
}

function isHandmade({ model }: World, lane: string): boolean {
  return model.events.some((event) => event.lane === lane && event.byHand)
}

function slotOfLane({ scene }: World, lane: string): number {
  return slotOf(scene.laneIds.get(lane) ?? '0')
}

/** Everything heals: transactions commit, the broker takes everything, operators let everything go on, time passes. */
export async function heal(world: World): Promise<void> {
  const { model, operator } = world
  world.tell('everything heals, and time passes until nothing is left')
  for (const writer of world.writers) if (writer.open) await end(world, writer, 'commit')
  for (const topic of model.heldTopics) await operator.release({ topic })
  for (const lane of model.heldLanes) {
    const [topic = '', key = ''] = lane.split('/')
    await operator.release({ topic, key })
  }
  model.heldTopics.clear()
  model.heldLanes.clear()
  for (const id of [...world.unburied]) await bury(world, id)
  if (world.relays.length === 0) await startRelay(world)
}

/** Lets time pass until the same events are left twice. */
export async function drain(world: World): Promise<void> {
  for (let before = ''; isRight(world); ) {
    await settleDown(world)
    while (world.broker.calls.length > 0 && isRight(world)) {
      for (const call of world.broker.calls) world.broker.answer(call, { acknowledged: call.events.length, beyond: 0 })
      await world.traffic.rest()
      await lookAround(world)
    }
    for (const topic of ['a', 'b'].filter((each) =>
      model(world).some(({ status, topic: of }) => status === 'held' && of === each),
    )) {
      await world.operator.requeue({ topic, status: 'held' })
      for (const event of model(world)) if (event.topic === topic && event.status === 'held') world.model.requeue(event)
    }
    const left = numbers(leftOf(world))
    if (left === before) return
    before = left
    await pass(world, 3)
  }
}

function isRight({ wrong }: World): boolean {
  return wrong === undefined
}

function model(world: World): readonly Known[] {
  return world.model.events
}

function leftOf({ model: { events } }: World): Known[] {
  return events.filter(({ status }) => status === 'pending' || status === 'scheduled' || status === 'held')
}

/** The slow sweep takes one stretch of neighbouring slots at a time. */
function slicesOfARound({ engine }: SteppedRelay): number {
  return engine.slots.usable().filter((slot) => engine.slots.epoch(slot - 1) === undefined).length
}

/** At the end: nothing is lost, nothing is left, and no relay has anything in hand. */
export async function checkTheEnd(world: World): Promise<void> {
  const stuck = leftOf(world).find(({ lane }) => !isHandmade(world, lane))
  if (stuck !== undefined)
    world.wrong ??= `event ${stuck.number} is left, and nobody will ever look for it but the slow sweep`
  for (let slices = Math.max(...world.relays.map(slicesOfARound)); slices >= 0 && leftOf(world).length > 0; slices--) {
    world.theatre.clock.pass(sweepIntervalMs)
    await drain(world)
  }
  const left = leftOf(world)
  if (left.length > 0) world.wrong ??= `event ${numbers(left)} is left, whatever is swept`
  const lost = model(world).find(
    (event) => isCommitted(event) && event.status !== 'failed' && event.deliveries.length === 0 && !event.excused,
  )
  if (lost !== undefined) world.wrong ??= `event ${lost.number} was never delivered`
  for (const { name, engine } of world.relays) {
    if (engine.lanes.size > 0) world.wrong ??= `relay ${name} keeps a lane in flight`
    if (engine.settler.waiting > 0) world.wrong ??= `relay ${name} has an outcome that is not settled`
    if (engine.parked()) world.wrong ??= `relay ${name} remembers lanes that wait, and none does`
    const told = world.broker.told.find(
      (each) => each.relay === name && !each.settled && each.kind !== 'unknown' && each.kind !== 'unavailable',
    )
    if (told !== undefined)
      world.wrong ??= `relay ${name} never settled that event ${told.event.number} was ${told.kind}`
  }
}
