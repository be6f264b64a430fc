import type { Row, Statement } from '../contract/sql-client.ts'
import { type LaneRows, readLanes } from './find.ts'
import { holdsSql, laneRunSql } from './lane-run.ts'
import { type Names, statementName } from './names.ts'

export interface SweepParameters {
  /** Where to start (inclusive) and the last lane of the range. */
  readonly from: string
  readonly to: string
  readonly lanes: number
  readonly rowsOfALane: number
  readonly topics: readonly string[] | null
  readonly rows: number
}

/**
 * The truth, one slice at a time: visits each lane of a range once, whatever find remembers, by a loose index scan.
 *
 * Parameters: $1 first lane, $2 last lane, $3 lanes (500 is usual), $4 rows of a lane (at most 1000), $5 topics or
 * null, $6 rows in all. Index: `lane`. Locks: none. A slice that returned fewer than $3 lanes was the last of its range.
 *
 * The literal `limit 1` inside the recursion keeps the estimate below the threshold of JIT: with limits that the
 * planner cannot see alone, a call took 260 to 430 ms instead of 2 to 8.
 */
export function sweepStatement(names: Names): (parameters: SweepParameters) => Statement {
  const events = names.table('events')
  const text = `with recursive h as (
  (select lane, id, status, available_at, 1 k from ${events}
   where status in ('pending', 'held') and (lane, id) >= ($1::bigint, 0::bigint) and lane <= $2::bigint order by lane, id limit 1)
  union all
  select n.lane, n.id, n.status, n.available_at, h.k + 1 from h cross join lateral (
    select e.lane, e.id, e.status, e.available_at from ${events} e
    where e.status in ('pending', 'held') and (e.lane, e.id) > (h.lane, 9223372036854775807) and e.lane <= $2::bigint order by e.lane, e.id limit 1) n
  where h.k < $3::int),
held as materialized (${holdsSql(names)}),
l0 as materialized (
  select lane, id first, status = 'pending' and available_at is null and not coalesce(lane = any((select lanes from held)::bigint[]), false) open from h),
l1 as materialized (
  select lane, first, case when open then least($4::int, greatest(1, $6::int / greatest(1, count(*) filter (where open) over ())))::int else 0 end n from l0)
select l.lane, l.first, e.* from (select array_agg(lane) a1, array_agg(first) a2, array_agg(n) a3 from l1) g
cross join lateral (
  select u.lane, u.first, u.n, 0::bigint low, (select topics from held) held_topics from unnest(g.a1, g.a2, g.a3) u(lane, first, n)) l
${laneRunSql(names, '$5')}`
  const name = statementName('sweep', text)
  return (p) => ({ name, text, values: [p.from, p.to, p.lanes, p.rowsOfALane, p.topics, p.rows] })
}

export function readSwept(rows: readonly Row[]): LaneRows[] {
  return readLanes(rows, 0, 1, 2)
}
