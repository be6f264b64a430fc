import type { Names } from './names.ts'

/** Which events an operator means. Null leaves a criterion open; all that are given must hold. Times are ISO text. */
export interface EventCriteria {
  readonly statuses: readonly string[]
  readonly topic: string | null
  readonly key: string | null
  readonly lane: string | null
  readonly type: string | null
  /** Text that the last error contains. */
  readonly cause: string | null
  /** Outcome of the last counted failure. */
  readonly outcome: string | null
  readonly failedAfter: string | null
  readonly failedBefore: string | null
  readonly createdAfter: string | null
  readonly createdBefore: string | null
  readonly publishedFrom: string | null
  readonly publishedTo: string | null
  /** Only events that wait for a time. */
  readonly waits: 'waits' | null
}

/** How many parameters the filter takes: $1 to $14. What a statement needs besides begins behind them. */
export const criteriaCount = 14

/** The columns that the filter looks at, and the payload is none of them. */
export const filteredColumns =
  'id, lane, status, topic, key, type, last_error, failed_at, created_at, published_at, available_at'

/**
 * Whether event `e` is meant. Parameters: $1 to $14 in the order of `EventCriteria`. Lower bounds are inclusive, upper
 * ones are not.
 *
 * The status and the time to wait for are compared in forms that no partial index can serve: beside a list of ids the planner would intersect the
 * primary key with all of one. A statement that wants such an index says its predicate itself.
 */
export function filterSql(names: Names): string {
  return `(e.status || '') = any($1::text[]) and ($2::text is null or e.topic = $2) and ($3::text is null or e.key = $3)
    and ($4::bigint is null or e.lane = $4) and ($5::text is null or e.type = $5) and ($6::text is null or strpos(e.last_error, $6) > 0)
    and ($7::text is null or $7 = (select f.outcome from ${names.table('failures')} f where f.event = e.id order by f.at desc, f.attempt desc limit 1))
    and ($8::timestamptz is null or e.failed_at >= $8) and ($9::timestamptz is null or e.failed_at < $9)
    and ($10::timestamptz is null or e.created_at >= $10) and ($11::timestamptz is null or e.created_at < $11)
    and ($12::timestamptz is null or e.published_at >= $12) and ($13::timestamptz is null or e.published_at < $13)
    and ($14::text is null or coalesce(e.available_at, '-infinity') > '-infinity')`
}

export function criteriaValues(criteria: EventCriteria): readonly unknown[] {
  const { statuses, topic, key, lane, type, cause, outcome } = criteria
  const { failedAfter, failedBefore, createdAfter, createdBefore, publishedFrom, publishedTo, waits } = criteria
  return [
    statuses,
    topic,
    key,
    lane,
    type,
    cause,
    outcome,
    failedAfter,
    failedBefore,
    createdAfter,
    createdBefore,
    publishedFrom,
    publishedTo,
    waits,
  ]
}
