import type { Row, Statement } from '../contract/sql-client.ts'
import type { Names } from './names.ts'

/** Rows behind the first event that are looked at. */
export const laterRows = 50_000

export interface LaterPublished {
  /** Published events that stand behind an event of the list in its lane. */
  readonly events: number
  /** Lanes in which there are any. */
  readonly keys: number
  /** The rows to look at ended before the table did: there may be more. */
  readonly atLeast: boolean
  readonly examples: readonly { readonly topic: string; readonly key: string | null; readonly events: number }[]
}

/**
 * How much of what comes behind given events in their lanes is published already, and would be followed by them.
 *
 * Parameters: $1 smallest id of the list, $2 as many of its ids as there are rows to look at, in order. Index: primary
 * key, once through at most 50,000 rows. Locks: none.
 *
 * There is no index of published events by lane, because every settle would pay for it. So the rows behind the first
 * event are read, and the answer says when they were not all: a number that is bounded and honest about it. Grouped and
 * not joined, because the planner knows nothing of the size of the list and took nested loops for 25,000 ids.
 */
export function countLaterPublishedStatement(names: Names): (first: string, ids: readonly string[]) => Statement {
  const text = `with w as materialized (
  select * from (
    select id, lane, status, topic, key from ${names.table('events')} where id >= $1::bigint order by id limit ${String(laterRows)}) w
  limit (select 2147483647)),
m as materialized (
  select id, max(lane) lane, max(topic) topic, max(key) key, bool_or(published) published, bool_or(given) given from (
    select id, lane, topic, key, status = 'published' published, false given from w
    union all select id, null, null, null, false, true from unnest($2::bigint[]) id) m
  group by id),
p as materialized (
  select lane, max(topic) topic, max(key) key, count(*) events from (
    select m.*, min(id) filter (where given) over (partition by lane) first from m where lane is not null) m
  where published and not given and id > first group by lane)
select (select coalesce(sum(events), 0) from p), (select count(*) from p), (select count(*) from w) >= ${String(laterRows)},
  (select jsonb_agg(jsonb_build_object('topic', topic, 'key', key, 'events', events) order by events desc, topic, key)
   from (select * from p order by events desc, topic, key limit 10) p)`
  return (first, ids) => ({ text, values: [first, ids] })
}

export function readLaterPublished(rows: readonly Row[]): LaterPublished {
  const [events, keys, atLeast, examples] = rows[0] ?? []
  return {
    events: Number(events),
    keys: Number(keys),
    atLeast: atLeast === 't',
    examples: typeof examples === 'string' ? (JSON.parse(examples) as LaterPublished['examples']) : [],
  }
}
