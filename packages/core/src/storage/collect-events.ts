import type { Row, Statement } from '../contract/sql-client.ts'
import { criteriaCount, criteriaValues, type EventCriteria, filteredColumns, filterSql } from './event-filter.ts'
import type { Names } from './names.ts'
import { readArray } from './settle.ts'

/**
 * A way to walk through the events of a state: by the index of that state, or by ids that were given.
 *
 * `undated` are failed events without a time of failure, which only a person can have made.
 */
export type CollectPath = 'failed' | 'undated' | 'in-line' | 'waiting' | 'published'

/** Where a walk goes on: the values that the index is ordered by, as text. */
export type CollectCursor = readonly [string | null, string | null]

export interface Collected {
  /** Rows that were looked at, and how many of them are meant is the number of ids. */
  readonly scanned: number
  readonly ids: readonly string[]
  readonly cursor: CollectCursor
}

/** Rows that one statement looks at, however few of them are meant. */
export const collectedRows = 10_000

interface Walk {
  readonly where: string
  readonly order: string
  readonly limit: string
  /** What the cursor becomes, taken from the last row. */
  readonly cursor: readonly [string, string]
}

// Rows with the same time stay together, so that the time alone is a cursor: a settle gives many of them.
const withTies = `fetch first ${String(collectedRows)} rows with ties`

const walks: Readonly<Record<CollectPath, Walk>> = {
  failed: {
    where: `e.status in ('failed', 'held') and e.failed_at > coalesce($15::timestamptz, '-infinity') and $16::bigint is null
      and e.failed_at >= coalesce($8::timestamptz, '-infinity') and e.failed_at < coalesce($9::timestamptz, 'infinity')`,
    order: 'e.failed_at',
    limit: withTies,
    cursor: ['failed_at', 'null'],
  },
  undated: {
    where: `e.status in ('failed', 'held') and e.failed_at is null and $15::timestamptz is null and $16::bigint is null`,
    order: 'e.failed_at',
    limit: withTies,
    cursor: ['null', 'null'],
  },
  'in-line': {
    where: `e.status in ('pending', 'held') and (e.lane, e.id) > (coalesce($15::bigint, $4::bigint, '-9223372036854775808'::bigint), coalesce($16::bigint, -1)) and e.lane <= coalesce($4::bigint, 9223372036854775807)`,
    order: 'e.lane, e.id',
    limit: `limit ${String(collectedRows)}`,
    cursor: ['lane', 'id'],
  },
  waiting: {
    where: `e.available_at is not null and (e.available_at, e.id) > (coalesce($15::timestamptz, '-infinity'), coalesce($16::bigint, -1))`,
    order: 'e.available_at, e.id',
    limit: `limit ${String(collectedRows)}`,
    cursor: ['available_at', 'id'],
  },
  published: {
    where: `e.status = 'published' and e.published_at > coalesce($15::timestamptz, '-infinity') and $16::bigint is null
      and e.published_at >= coalesce($12::timestamptz, '-infinity') and e.published_at < coalesce($13::timestamptz, 'infinity')`,
    order: 'e.published_at',
    limit: withTies,
    cursor: ['published_at', 'null'],
  },
}

/**
 * Reads one stretch of a state's events and returns the ids of those that are meant. A stretch is bounded by the rows
 * that are looked at and not by those that are meant, so no statement is long, however rare they are.
 *
 * Parameters: $1 to $14 the filter, $15 and $16 where the stretch before ended. Locks: none. Indexes: `failed`, `lane`,
 * `waiting` or `published`, in their own order.
 *
 * Why ids are collected before anything is changed: what is put back in line must come out in id order, and the indexes
 * of failed and published events are ordered by time. And an event that fails again is not met a second time.
 *
 * The hidden limit outside makes the planner take the path that is already in order, as in find.
 */
export function collectStatement(
  names: Names,
  path: CollectPath,
): (criteria: EventCriteria, cursor: CollectCursor) => Statement {
  const { where, order, limit, cursor } = walks[path]
  const [first, second] = cursor.map((column) => (column === 'null' ? 'null' : `l.${column}::text`))
  const text = `with w as materialized (
  select e.*, row_number() over () n, ${filterSql(names)} meant from (
    select * from (select ${filteredColumns} from ${names.table('events')} e where ${where} order by ${order} ${limit}) e
    limit (select 2147483647)) e)
select (select count(*) from w), (select array_agg(id) from w where meant), ${first ?? ''}, ${second ?? ''}
from (select 1) one left join (select * from w order by n desc limit 1) l on true`
  return (criteria, [a, b]) => ({ text, values: [...criteriaValues(criteria), a, b] })
}

/** The events that are meant among ids or event ids that were given: $15. Index: primary key or `event_id`. Locks: none. */
export function collectGivenStatement(
  names: Names,
  column: 'id' | 'event_id',
): (criteria: EventCriteria, given: readonly string[]) => Statement {
  const type = column === 'id' ? 'bigint' : 'uuid'
  const text = `select count(*), array_agg(e.id), null, null from ${names.table('events')} e
where e.${column} = any(array(select unnest($${String(criteriaCount + 1)}::${type}[]))) and ${filterSql(names)}`
  return (criteria, given) => ({ text, values: [...criteriaValues(criteria), given] })
}

export function readCollected(rows: readonly Row[]): Collected {
  const [scanned, ids, first, second] = rows[0] ?? []
  return { scanned: Number(scanned), ids: readArray(ids), cursor: [first as string | null, second as string | null] }
}
