import { OutboxError, type Problem } from '../contract/errors.ts'
import type { SqlSession } from '../contract/sql-client.ts'
import { sqlFault, sqlState } from '../contract/sql-state.ts'
import {
  type ExistingEvent,
  existingEventsStatement,
  insertEventsStatement,
  type NewEvent,
  readExisting,
  readInserted,
  withdrawEventsStatement,
} from '../storage/insert-events.ts'
import type { Names } from '../storage/names.ts'
import { checkEvent, type EventInput, type EventLimits } from './validate-event.ts'

export interface Enqueued {
  /** Row id as decimal text; it orders the events of a key. */
  readonly id: string
  readonly eventId: string
  /** True when an event with this id was there already; nothing was written for it. */
  readonly duplicate: boolean
}

/**
 * Bytes of events in one statement. A statement is one message of at most 1 GB and its list of payloads one string of at
 * most 512 MiB, in which every byte takes two characters; 32 MiB also bounds the memory that a call needs on both sides.
 */
const maxStatementBytes = 32 * 1024 * 1024

/**
 * Checks all events, then inserts them with one statement, or with more when they are too large for one.
 *
 * @throws OutboxError EVENT_INVALID before any SQL; EVENT_ID_CONFLICT when an event id is taken by another event;
 *   SCHEMA_MISSING and SCHEMA_BEHIND when the outbox was not migrated.
 */
export async function enqueueEvents(
  session: SqlSession,
  names: Names,
  inputs: readonly EventInput[],
  limits: EventLimits,
): Promise<Enqueued[]> {
  const events = checkAll(inputs, limits)
  if (events.length === 0) return []
  const inserted = new Map<string, string>()
  for (const part of partsOf(events)) {
    const { rows } = await session
      .run(insertEventsStatement(names, part))
      .catch((cause: unknown) => explain(cause, names))
    for (const [eventId, id] of readInserted(rows)) inserted.set(eventId, id)
  }
  if (inserted.size === events.length) {
    return events.map(({ eventId }) => ({ id: inserted.get(eventId) ?? '', eventId, duplicate: false }))
  }
  return withExisting(session, names, events, inserted)
}

/** Every error of the database reaches the caller as it is, except that of an outbox that is not there yet. */
function explain(cause: unknown, { schema }: Names): never {
  if (sqlFault(cause) !== 'schema') throw cause
  const missing = sqlState(cause) === '42P01' || sqlState(cause) === '3F000'
  throw new OutboxError(
    missing ? 'SCHEMA_MISSING' : 'SCHEMA_BEHIND',
    `The event could not be written: ${cause instanceof Error ? cause.message : String(cause)}. ${missing ? `There is no outbox in schema "${schema}" of this database` : `The outbox in schema "${schema}" is older than this code`}. Run outbox.migrate() once, or the statements of outbox.migrationSql() with your own migration tool.`,
    { cause },
  )
}

function checkAll(inputs: readonly EventInput[], limits: EventLimits): NewEvent[] {
  const events: NewEvent[] = []
  const problems: Problem[] = []
  inputs.forEach((input, index) => {
    const checked = checkEvent(input, limits)
    if ('event' in checked) events.push(checked.event)
    else problems.push(...checked.problems.map((problem) => ({ ...problem, index })))
  })
  if (problems.length === 0) return events
  const shown = problems.slice(0, 10).map(({ index, path, message }) => `event ${String(index)}: ${path} ${message}`)
  if (problems.length > shown.length) shown.push(`and ${String(problems.length - shown.length)} more`)
  throw new OutboxError('EVENT_INVALID', `Nothing was enqueued: ${shown.join('; ')}`, { problems })
}

function* partsOf(events: readonly NewEvent[]): Generator<readonly NewEvent[]> {
  let from = 0
  let bytes = 0
  for (const [index, { payload, headers }] of events.entries()) {
    const more = (payload?.byteLength ?? 0) + headers.length
    if (index > from && bytes + more > maxStatementBytes) {
      yield events.slice(from, index)
      from = index
      bytes = 0
    }
    bytes += more
  }
  yield events.slice(from)
}

/** Some event ids were taken: an event that is there already is reported with its row, another one is a conflict. */
async function withExisting(
  session: SqlSession,
  names: Names,
  events: readonly NewEvent[],
  inserted: ReadonlyMap<string, string>,
): Promise<Enqueued[]> {
  const existing: ExistingEvent[] = []
  for (const part of partsOf(events))
    existing.push(...readExisting((await session.run(existingEventsStatement(names, part))).rows))
  const conflicts = existing.filter(({ same }) => !same)
  if (conflicts.length > 0) {
    await session.run(withdrawEventsStatement(names, [...inserted.values()]))
    throw new OutboxError(
      'EVENT_ID_CONFLICT',
      `Nothing was enqueued: the event id ${conflicts.map(({ eventId }) => eventId).join(', ')} belongs to an event with another topic, key or payload. Use a new event id for a new event.`,
      {
        problems: conflicts.map(({ eventId }) => ({
          path: '/eventId',
          message: `${eventId} is taken`,
          index: events.findIndex((event) => event.eventId === eventId),
        })),
      },
    )
  }
  const ids = new Map(existing.map(({ id, eventId }) => [eventId, id]))
  const fresh = new Set(inserted.keys())
  return events.map(({ eventId }) => {
    const id = ids.get(eventId)
    if (id === undefined)
      throw new OutboxError(
        'EVENT_ID_CONFLICT',
        `The event with id ${eventId} was there when it was inserted and is gone now. Roll back and enqueue it again.`,
      )
    // The first of several with one id in the same call is the one that was written.
    return { id, eventId, duplicate: !fresh.delete(eventId) }
  })
}
