import { OutboxError } from '../contract/errors.ts'
import { checkOptions, choiceOption, type OptionTable } from '../contract/option-table.ts'
import { explainSchema } from '../contract/schema-fault.ts'
import type { SqlSession } from '../contract/sql-client.ts'
import {
  type ExistingEvent,
  existingEventsStatement,
  insertEventsStatement,
  type NewEvent,
  readExisting,
  readInserted,
  withdrawEventsStatement,
} from '../storage/insert-events.ts'
import { lockKeysStatement } from '../storage/lock-keys.ts'
import type { Names } from '../storage/names.ts'

export interface Enqueued {
  /** Row id as decimal text; it orders the events of a key. */
  readonly id: string
  readonly eventId: string
  /** True when an event with this id was there already; nothing was written for it. */
  readonly duplicate: boolean
}

/** How `enqueue` treats what it is given. */
export interface EnqueueOptions {
  /**
   * What to do with an event whose id is there already. `compare` (default): it is a duplicate if topic, key and payload
   * are the same, and EVENT_ID_CONFLICT otherwise. `ignore`: it is a duplicate, whatever it contains. For what comes
   * from a broker: the id decides there, and an error would bring the message back for ever.
   */
  readonly onDuplicate?: 'compare' | 'ignore'
}

export interface EnqueueSettings extends EnqueueOptions {
  readonly serializeWrites?: boolean | undefined
}

const enqueueTable: OptionTable = { onDuplicate: choiceOption('compare', 'ignore') }

/** @throws OutboxError OPTIONS_INVALID */
export function checkEnqueueOptions(options: EnqueueOptions): void {
  checkOptions('enqueue', options, enqueueTable)
}

/**
 * Bytes of events in one statement. A statement is one message of at most 1 GB and its list of payloads one string of at
 * most 512 MiB, in which every byte takes two characters; 32 MiB also bounds the memory that a call needs on both sides.
 */
const maxStatementBytes = 32 * 1024 * 1024

/**
 * Inserts events with one statement, or with more when they are too large for one. Before that, with `serializeWrites`,
 * it waits for whoever is writing to their keys.
 *
 * @throws OutboxError EVENT_ID_CONFLICT when an event id is taken by another event; SCHEMA_MISSING and SCHEMA_BEHIND when
 *   the outbox was not migrated.
 */
export async function enqueueEvents(
  session: SqlSession,
  names: Names,
  events: readonly NewEvent[],
  { serializeWrites = false, onDuplicate = 'compare' }: EnqueueSettings,
): Promise<Enqueued[]> {
  if (events.length === 0) return []
  const inserted = new Map<string, string>()
  try {
    // All keys of the call at once and not part by part, so that two calls never wait for each other.
    if (serializeWrites) await session.run(lockKeysStatement(names, events))
    for (const part of partsOf(events)) {
      const { rows } = await session.run(insertEventsStatement(names, part))
      for (const [eventId, id] of readInserted(rows)) inserted.set(eventId, id)
    }
  } catch (cause) {
    explainSchema(cause, 'The event could not be written', names.schema)
  }
  if (inserted.size === events.length) {
    return events.map(({ eventId }) => ({ id: inserted.get(eventId) ?? '', eventId, duplicate: false }))
  }
  return withExisting(session, names, events, inserted, onDuplicate)
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
  onDuplicate: 'compare' | 'ignore',
): Promise<Enqueued[]> {
  const existing: ExistingEvent[] = []
  for (const part of partsOf(events))
    existing.push(...readExisting((await session.run(existingEventsStatement(names, part))).rows))
  const conflicts = onDuplicate === 'ignore' ? [] : existing.filter(({ same }) => !same)
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
