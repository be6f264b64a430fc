import type { Row, Statement } from '../contract/sql-client.ts'
import type { Names } from './names.ts'

/** An event as it is written. */
export interface NewEvent {
  readonly eventId: string
  /** Whether the id came from the caller, so that it may be there already. */
  readonly chosenId: boolean
  readonly topic: string
  readonly key: string | null
  readonly type: string | null
  readonly payload: Uint8Array | null
  readonly contentType: string
  readonly headers: string
  /** Null leaves it to the mode of the outbox. */
  readonly ordering: string | null
  /** At most one of the two is set; both null is at once. */
  readonly delayMs: number | null
  readonly availableAt: string | null
}

/**
 * Inserts any number of events with one statement and no more than eleven parameters, ids in the order of the list.
 *
 * Locks: none that another writer waits for, unless both insert the same event id. The mode of the outbox is looked up
 * only where an event of the call brings an ordering of its own; otherwise the default of the column is the mode.
 *
 * A delay is added to the database's clock, never to the caller's.
 */
export function insertEventsStatement(names: Names, events: readonly NewEvent[]): Statement {
  const [event] = events
  if (event !== undefined && events.length === 1 && event.delayMs === null && event.availableAt === null)
    return insertOneStatement(names, event)
  const ordered = events.some(({ ordering }) => ordering !== null)
  const text = `insert into ${names.table('events')} (event_id, topic, key, type, payload, content_type, headers, status, available_at, ready_at${ordered ? ', ordering' : ''})
select n.event_id, n.topic, n.key, n.type, n.payload, n.content_type, n.headers::jsonb, case when t.at is null then 'pending' else 'scheduled' end, t.at, coalesce(t.at, now())
  ${ordered ? `, coalesce(n.ordering, (select s.ordering from ${names.table('settings')} s))` : ''}
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::text[], $7::text[], $8::float8[], $9::timestamptz[], $10::text[]) with ordinality
  n(event_id, topic, key, type, payload, content_type, headers, delay, at, ordering, position)
cross join lateral (select coalesce(n.at, clock_timestamp() + n.delay * interval '1 ms') at) t
order by n.position
${onConflict(events)}
returning id, event_id`
  return {
    text,
    values: [
      events.map(({ eventId }) => eventId),
      events.map(({ topic }) => topic),
      events.map(({ key }) => key),
      events.map(({ type }) => type),
      events.map(({ payload }) => payload),
      events.map(({ contentType }) => contentType),
      events.map(({ headers }) => headers),
      events.map(({ delayMs }) => delayMs),
      events.map(({ availableAt }) => availableAt),
      events.map(({ ordering }) => ordering),
    ],
  }
}

/**
 * The commonest call by far. Without lists to take apart the server plans and runs it in two thirds of the time. Bytes and
 * JSON are given as a list and as text all the same: libraries that serialize by the type of a parameter do it to text too.
 */
function insertOneStatement(names: Names, event: NewEvent): Statement {
  const { eventId, topic, key, type, payload, contentType, headers, ordering } = event
  const ordered = ordering !== null
  return {
    text: `insert into ${names.table('events')} (event_id, topic, key, type, payload, content_type, headers${ordered ? ', ordering' : ''})
values ($1::uuid, $2::text, $3::text, $4::text, ($5::bytea[])[1], $6::text, $7::text::jsonb${ordered ? ', $8::text' : ''})
${onConflict([event])}
returning id, event_id`,
    values: [eventId, topic, key, type, [payload], contentType, headers, ...(ordered ? [ordering] : [])],
  }
}

/** An id that was made for the call is nobody else's, and an insert that may not conflict writes less WAL. */
function onConflict(events: readonly NewEvent[]): string {
  return events.some(({ chosenId }) => chosenId) ? 'on conflict (event_id) do nothing' : ''
}

export function readInserted(rows: readonly Row[]): Map<string, string> {
  return new Map(rows.map(([id, eventId]) => [eventId as string, id as string]))
}

/**
 * The events that stood already under an id that the caller gave, and whether each is the same event. A statement of
 * its own: under READ COMMITTED it sees what committed while the insert waited.
 */
export function existingEventsStatement(names: Names, events: readonly NewEvent[]): Statement {
  return {
    text: `select e.id, e.event_id, e.topic = n.topic and e.key is not distinct from n.key and e.payload is not distinct from n.payload
from unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[]) n(event_id, topic, key, payload) join ${names.table('events')} e using (event_id)`,
    values: [
      events.map(({ eventId }) => eventId),
      events.map(({ topic }) => topic),
      events.map(({ key }) => key),
      events.map(({ payload }) => payload),
    ],
  }
}

export interface ExistingEvent {
  readonly id: string
  readonly eventId: string
  readonly same: boolean
}

export function readExisting(rows: readonly Row[]): ExistingEvent[] {
  return rows.map(([id, eventId, same]) => ({ id: id as string, eventId: eventId as string, same: same === 't' }))
}

/** Takes back what a call had inserted before it found a conflict, so that nothing of it stays in the transaction. */
export function withdrawEventsStatement(names: Names, ids: readonly string[]): Statement {
  return { text: `delete from ${names.table('events')} where id = any($1::bigint[])`, values: [ids] }
}
