import { isCommitted, type Known } from './model.ts'
import type { World } from './world.ts'

interface Row {
  readonly event_id: string
  readonly lane: string
  readonly status: string
  readonly attempts: number
  readonly requeues: number
  readonly hours: number | null
}

const everyEvent = {
  name: 'model_events',
  text: `select event_id, lane, status, attempts, requeues, (extract(epoch from available_at - clock_timestamp()) / 3600)::float8 hours from outbox.events`,
}

/** Compares, unless nobody can have changed anything since the last time. */
export async function compareChanges(world: World): Promise<void> {
  if (world.changes > world.compared) await compare(world)
  world.compared = world.changes
}

/** The table and the model say the same of every event. */
export async function compare(world: World): Promise<void> {
  const { rows } = await world.theatre.hand.query<Row>(everyEvent)
  const found = new Map(rows.map((row) => [row.event_id, row]))
  for (const event of world.model.events) {
    const row = found.get(event.eventId)
    found.delete(event.eventId)
    if (row !== undefined) world.scene.laneIds.set(event.lane, row.lane)
    const [expected, actual] = [wordsOf(event, world.model.now), row === undefined ? 'not there' : wordsOfRow(row)]
    if (expected !== actual) world.wrong ??= `event ${event.number} is ${actual}, and should be ${expected}`
  }
}

function wordsOf(event: Known, now: number): string {
  if (!isCommitted(event) || event.status === 'gone') return 'not there'
  const { status, attempts, requeues, until } = event
  return words({ status, attempts, requeues, hours: until === null ? null : until - now })
}

function wordsOfRow({ status, attempts, requeues, hours }: Row): string {
  return words({ status, attempts, requeues, hours })
}

function words({ status, attempts, requeues, hours }: Pick<Row, 'status' | 'attempts' | 'requeues' | 'hours'>): string {
  const wait = hours === null ? '' : `, due in ${(Math.round(hours * 4) / 4).toFixed(2)} hours`
  return `${status} with ${attempts} attempts and ${requeues} requeues${wait}`
}
