import type { Row, Statement } from '../contract/sql-client.ts'
import { holdsSql } from './lane-run.ts'
import type { Names } from './names.ts'

/** Most rows of one state that are counted. A literal in the text, so that it caps the planner's estimate. */
export const maxCounted = 100_000

/**
 * - `ready`: in line, and nothing in its lane keeps it back. - `waiting`: was tried and waits for its retry. -
 * `blocked`: stands behind one that waits or is held, or its topic or lane is held.
 */
export type CountedState = 'ready' | 'waiting' | 'blocked' | 'scheduled' | 'held' | 'failed'

export interface CountedEvents {
  readonly rows: readonly { readonly topic: string; readonly state: CountedState; readonly count: number }[]
  /** Which scans reached their limit: what they counted is at least that many. */
  readonly more: { readonly inLine: boolean; readonly waiting: boolean; readonly failed: boolean }
  /** Age of the event that has been in line for longest, in ms; null when there is none. */
  readonly oldestMs: number | null
}

/**
 * Counts what is not published, by topic and state.
 *
 * Parameters: $1 rows that are looked at in each state, at most 100,000. Indexes: `lane`, `waiting`, `failed`, each once
 * and in its order, and a short stretch of `arrival`. Locks: none.
 *
 * The limit is on rows that are looked at, so the statement takes as long with ten million events as with ten thousand.
 * The oldest event is exact below the limit; beyond it, it is the oldest of what was looked at and of the thousand that
 * have been in line unchanged for longest.
 */
export function countEventsStatement(names: Names): (limit: number) => Statement {
  const events = names.table('events')
  const literal = String(maxCounted)
  const text = `with h as materialized (${holdsSql(names)}),
i as materialized (
  select x.topic, x.status, x.available_at, x.ready_at, count(*) filter (where x.status = 'held' or x.available_at is not null)
      over (partition by x.lane order by x.id rows unbounded preceding) > 0
    or coalesce(x.topic = any((select topics from h)::text[]), false) or coalesce(x.lane = any((select lanes from h)::bigint[]), false) stopped
  from (
    select * from (
      select lane, id, topic, status, available_at, ready_at from ${events} line
      where status in ('pending', 'held') order by lane, id limit ${literal}) x
    limit (select $1::int)) x),
w as materialized (
  select topic, status from (
    select topic, status from ${events} later where available_at is not null order by available_at, id limit ${literal}) x
  limit (select $1::int)),
f as materialized (
  select topic, status from (
    select topic, status from ${events} ended where status in ('failed', 'held') order by failed_at limit ${literal}) x
  limit (select $1::int)),
o as materialized (
  select min(ready_at) at from (
    select ready_at from i where status = 'pending'
    union all
    select ready_at from (
      select ready_at from (
        select ready_at from ${events} oldest where (status = 'pending') is true order by xid, id limit 1000) x
      limit (select 1000)) x) x),
c as (
  select topic, case when available_at is not null then 'waiting' when stopped then 'blocked' else 'ready' end state, count(*) n
    from i where status = 'pending' group by 1, 2
  union all select topic, 'scheduled', count(*) from w where status = 'scheduled' group by 1
  union all select topic, status, count(*) from f group by 1, 2)
select (select count(*) from i) >= $1::int, (select count(*) from w) >= $1::int, (select count(*) from f) >= $1::int,
  (select case when at is not null then greatest(0, (extract(epoch from clock_timestamp()) - extract(epoch from at)) * 1000)::float8 end from o), c.topic, c.state, c.n
from (select 1) one left join c on true`
  return (limit) => ({ text, values: [limit] })
}

export function readCounted(rows: readonly Row[]): CountedEvents {
  const [inLine, waiting, failed, oldest] = rows[0] ?? []
  return {
    more: { inLine: inLine === 't', waiting: waiting === 't', failed: failed === 't' },
    oldestMs: oldest === null || oldest === undefined ? null : Number(oldest),
    rows: rows.flatMap(([, , , , topic, state, count]) =>
      topic === null ? [] : [{ topic: topic as string, state: state as CountedState, count: Number(count) }],
    ),
  }
}
