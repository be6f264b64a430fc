import type { Row, Statement } from '../contract/sql-client.ts'
import type { Names } from './names.ts'
import { readArray } from './settle.ts'
import type { OpenedLanes } from './take-events.ts'

/**
 * Makes the next find look at lanes out of which a blocking event went, or whose hold ended: stamps one event of each.
 *
 * Parameters: $1 lanes, $2 the id behind which to look in each. Index: `lane`. Locks: one row of each lane, the first
 * that is free.
 *
 * Must run in a transaction of its own, after the one that took the blocking event away has committed. In the same one,
 * an event that commits meanwhile would be missed: not visible to this snapshot, and passed over by a find that still
 * saw the lane blocked. After the commit, whatever this snapshot does not see is met as an arrival by a find that no
 * longer sees the lane blocked.
 *
 * - Any event behind the one that went will do, because an arrival only names its lane: find reads a lane that is not in
 *   flight from its start, and one in flight from no later than the event that went.
 * - So a row that somebody has locked is passed over for the next. Answers with the lanes in which none was free; they
 *   have to be stamped again.
 * - If the process dies before this runs, the background sweep finds the lane.
 */
export function stampLanesStatement(names: Names): (opened: OpenedLanes) => Statement {
  const events = names.table('events')
  const behind = `from ${events} b where b.status in ('pending', 'held') and (b.lane, b.id) > (g.lane, g.after) and b.lane <= g.lane order by b.lane, b.id limit 1`
  const text = `with g as materialized (select * from unnest($1::bigint[], $2::bigint[]) g(lane, after)),
n as materialized (
  select g.lane, g.after, x.id from g left join lateral (
    select b.id ${behind} for update skip locked) x on true),
u as (update ${events} e set xid = pg_current_xact_id() where e.id = any(array(select id from n where id is not null))),
missed as materialized (
  select g.lane, g.after from n g where g.id is null and exists (
    select 1 from (select 1 ${behind}) b))
select array_agg(lane order by lane), array_agg(after order by lane) from missed`
  return ({ lanes, after }) => ({ text, values: [lanes, after] })
}

export function readMissed(rows: readonly Row[]): OpenedLanes {
  const [lanes, after] = rows[0] ?? []
  return { lanes: readArray(lanes), after: readArray(after) }
}
