import type { HoldTarget } from '../../src/storage/hold-lane.ts'
import { explain, type Known, type Status } from './model.ts'
import { pick } from './perform-relays.ts'
import type { StepOf } from './script.ts'
import type { World } from './world.ts'

const hourMs = 3_600_000
const laterHours = 1.25

function pickIn({ model }: World, index: number, statuses: readonly Status[]): Known | undefined {
  return pick(
    model.events.filter(({ status }) => statuses.includes(status)),
    index,
  )
}

export async function holdOrRelease(world: World, { do: verb, topic, key }: StepOf<'hold' | 'release'>): Promise<void> {
  const { model, operator } = world
  const [held, name] = key === undefined ? [model.heldTopics, topic] : [model.heldLanes, `${topic}/${key}`]
  if (held.has(name) === (verb === 'hold')) return
  world.tell(
    `an operator ${verb === 'hold' ? 'holds' : 'releases'} topic ${topic}${key === undefined ? '' : `, key ${key}`}`,
  )
  const target: HoldTarget = key === undefined ? { topic } : { topic, key }
  if (verb === 'hold') {
    await operator.hold(target, { reason: 'the script' })
    held.add(name)
  } else {
    await operator.release(target)
    held.delete(name)
  }
}

export async function requeue(world: World, { topic }: StepOf<'requeue'>): Promise<void> {
  const meant = world.model.events.filter(
    (event) => event.topic === topic && (event.status === 'failed' || event.status === 'held'),
  )
  if (meant.length === 0) return
  world.tell(`an operator requeues what failed or is held of topic ${topic}`)
  await world.operator.requeue({ topic })
  for (const event of meant) world.model.requeue(event)
}

export async function discard(world: World, step: StepOf<'discard'>): Promise<void> {
  const event = pickIn(world, step.event, ['scheduled', 'pending', 'held', 'failed'])
  if (event === undefined) return
  world.tell(`an operator discards event ${event.number}`)
  await world.operator.discard({ eventIds: [event.eventId] })
  world.model.discard(event)
}

export async function replay(world: World, step: StepOf<'replay'>): Promise<void> {
  const event = pickIn(world, step.event, ['published'])
  if (event === undefined) return
  world.tell(`an operator replays event ${event.number}`)
  // What was published in this very millisecond is not met by a replay, so that it never meets what it put in line.
  await world.theatre.hand.query(
    `update outbox.events set published_at = published_at - interval '1 ms' where event_id = $1`,
    [event.eventId],
  )
  await world.operator.replay({ eventIds: [event.eventId] })
  world.model.requeue(event)
}

export async function reschedule(world: World, { event: index, later }: StepOf<'reschedule'>): Promise<void> {
  const { model, operator, theatre } = world
  const meant = model.events.filter(
    ({ status, until }) => (status === 'pending' || status === 'scheduled') && (later || until !== null),
  )
  const event = pick(meant, index)
  if (event === undefined) return
  world.tell(`an operator reschedules event ${event.number} ${later ? `for ${laterHours} hours later` : 'for now'}`)
  const at = later ? new Date(theatre.clock.trueTime() + laterHours * hourMs) : 'now'
  await operator.reschedule({ eventIds: [event.eventId] }, { at })
  model.reschedule(event, later ? model.now + laterHours : null)
}

export async function purge(world: World): Promise<void> {
  const published = world.model.events.filter(({ status }) => status === 'published')
  if (published.length === 0) return
  world.tell('an operator purges what is published')
  await world.operator.purge({ retainPublishedMs: 0 })
  for (const event of published) event.status = 'gone'
}

export async function changeByHand(world: World, step: StepOf<'delete' | 'revive' | 'fail'>): Promise<void> {
  const event = pickIn(world, step.event, changeable[step.do])
  if (event === undefined) return
  world.tell(`somebody ${handWords[step.do]} event ${event.number} in psql`)
  await world.theatre.hand.query(handSql[step.do], [event.eventId])
  event.byHand = true
  event.moves += 1
  explain([event])
  if (step.do === 'delete') world.model.discard(event)
  else Object.assign(event, { status: step.do === 'fail' ? 'failed' : 'pending', until: null, excused: true })
}

const changeable = {
  delete: ['scheduled', 'pending', 'published', 'failed', 'held'],
  revive: ['published', 'failed'],
  fail: ['pending', 'scheduled', 'held'],
} as const

const handWords = { delete: 'deletes', revive: 'puts back in line', fail: 'marks as failed' }

const handSql = {
  delete: 'delete from outbox.events where event_id = $1',
  revive: "update outbox.events set status = 'pending', published_at = null, failed_at = null where event_id = $1",
  fail: "update outbox.events set status = 'failed', failed_at = now(), available_at = null where event_id = $1",
}

/** Ages what waits, also what is not committed yet. */
export async function pass(world: World, hours: number): Promise<void> {
  const { clock, hand } = world.theatre
  clock.pass(hours * hourMs)
  const sql = `update outbox.events set available_at = available_at - $1 * interval '1 hour' where available_at is not null`
  await hand.query(sql, [hours])
  for (const { client, written } of world.writers) {
    const waiting = written.filter(({ until }) => until !== null).map(({ eventId }) => eventId)
    if (waiting.length > 0) await client.query(`${sql} and event_id = any($2)`, [hours, waiting])
  }
  world.model.pass(hours)
}
