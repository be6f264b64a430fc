import { compareIds } from '../contract/lane.ts'
import type { Row, Statement } from '../contract/sql-client.ts'
import { type EventRow, readEventRow } from './event-row.ts'
import { holdsSql, laneRunSql } from './lane-run.ts'
import { type Names, statementName } from './names.ts'

/** Most arrivals in one answer. A literal in the text, so that it caps the planner's estimate. */
export const maxArrivals = 1000

export interface FindParameters {
  /** `xmax` and the in-progress list of the previous answer. */
  readonly previous: Snapshot
  readonly arrivals: number
  readonly slots: readonly number[]
  readonly topics: readonly string[] | null
  /** Lanes to go on with, each from its low id. */
  readonly lanes: readonly string[]
  readonly lows: readonly string[]
  readonly rowsOfALane: number
  /** Lanes in flight that an earlier find already met: only their smallest arrived id is read. */
  readonly busy: readonly string[]
  readonly rows: number
}

export interface Snapshot {
  readonly xmax: string
  readonly inProgress: readonly string[]
}

export interface LaneRows {
  readonly lane: string
  /** Smallest id that arrived (find) or the first row of the lane (sweep); null for a lane that only goes on. */
  readonly first: string | null
  readonly rows: readonly EventRow[]
}

export interface Found {
  readonly snapshot: Snapshot
  /** Start time of the server as text: it tells one server from another behind the same address. */
  readonly started: string
  /** The limit of arrivals was reached, so there may be more. */
  readonly hit: boolean
  /** Milliseconds until the next event that waits for a time; 0 or less is due, null is none. */
  readonly nextDueMs: number | null
  readonly lanes: readonly LaneRows[]
}

/**
 * What became visible since the previous snapshot, and the next run of every lane to go on with, in one snapshot.
 *
 * Parameters: $1 previous xmax, $2 previous in-progress list, $3 arrivals (at most 1000), $4 owned slots, $5 topics or
 * null, $6 and $7 lanes to go on with and their low ids, $8 rows of a lane (at most 1000), $9 busy lanes, $10 rows in
 * all. Indexes: `arrival`, `lane`, and one probe of `waiting`. Locks: none; it writes nothing, because its own
 * transaction id would be missing from its snapshot's list.
 *
 * A row that is visible now and was not before has an xid of the previous xmax or later, or one of the previous list
 * that has ended since. So a transaction that commits late with low ids is seen by the find after its commit, nothing
 * waits for a long transaction, and no clock is compared: `now()` is fixed before the snapshot is, and a comparison
 * with it lost 279 of 6,376 events.
 *
 * - Aborted transactions are left out by `pg_xact_status`: the rollback of a million rows is not walked through.
 * - Once the arrivals reached their limit this statement does not know all of them, so lanes are read from 0: reading
 *   on from a low id would pass over an older event beyond the limit.
 * - Rows are shared among the lanes: 1,000 lanes of 50 rows took 585 ms without `$10`, 26 to 40 with it.
 * - Busy lanes return no rows: 20 arrivals in a lane with 500k dead rows under a pinned snapshot cost 1.7 ms instead
 *   of 138.
 */
export function findStatement(names: Names): (parameters: FindParameters) => Statement {
  const events = names.table('events')
  const text = `with s as materialized (select pg_current_snapshot() snap),
r as materialized (
  select $1::text::xid8 lo, pg_snapshot_xmax(snap) hi from s
  union all
  select x, x from s, unnest($2::text[]::xid8[]) x where pg_visible_in_snapshot(x, snap) and pg_xact_status(x) is distinct from 'aborted'),
a as materialized (
  select e.lane, e.id, e.topic from (select array_agg(lo) lo, array_agg(hi) hi from r) g cross join unnest(g.lo, g.hi) r(lo, hi) cross join lateral (
    select * from (
      select e.lane, e.id, e.topic from ${events} e
      where (e.status = 'pending') is true and (e.xid, e.id) >= (r.lo, 0::bigint) and e.xid <= r.hi
      order by e.xid, e.id limit ${String(maxArrivals)}) e
    limit (select $3::int)) e
  limit (select $3::int)),
al as materialized (
  select lane, min(id) arrived from a
  where ((lane >> 56) + 128)::int = any($4::int[]) and ($5::text[] is null or topic = any($5::text[])) group by lane),
h as materialized (${holdsSql(names)}),
l0 as materialized (
  select lane, min(low) low, min(arrived) arrived, bool_or(cont) cont from (
    select lane, arrived low, arrived, false cont from al union all
    select lane, low, null, true from unnest($6::bigint[], $7::bigint[]) c(lane, low)) u group by lane),
l1 as materialized (
  select lane, case when cont and (select count(*) from a) < least($3::int, ${String(maxArrivals)}) then low else 0 end low, arrived,
    (not cont and lane = any($9::bigint[])) or coalesce(lane = any((select lanes from h)::bigint[]), false) busy from l0),
l2 as materialized (
  select l1.*, case when busy then 0 else least($8::int, greatest(1, $10::int / greatest(1, count(*) filter (where not busy) over ())))::int end n from l1)
select s.snap::text, extract(epoch from pg_postmaster_start_time())::text, (select count(*) from a) >= least($3::int, ${String(maxArrivals)}),
  (select ((extract(epoch from w.available_at) - extract(epoch from clock_timestamp())) * 1000)::float8
   from (select available_at from ${events} where available_at is not null order by available_at, id limit 1) w),
  l.lane, l.arrived, e.*
from s cross join (select array_agg(lane) a1, array_agg(low) a2, array_agg(arrived) a3, array_agg(n) a4 from l2) g
left join lateral (
  select u.lane, u.low, u.arrived, u.n, (select topics from h) held_topics from unnest(g.a1, g.a2, g.a3, g.a4) u(lane, low, arrived, n)) l on true
${laneRunSql(names, '$5')}`
  const name = statementName('find', text)
  return (p) => ({
    name,
    text,
    values: [
      p.previous.xmax,
      p.previous.inProgress,
      p.arrivals,
      p.slots,
      p.topics,
      p.lanes,
      p.lows,
      p.rowsOfALane,
      p.busy,
      p.rows,
    ],
  })
}

const firstEventColumn = 6

export function readFound(rows: readonly Row[]): Found {
  const [header] = rows
  if (header === undefined) throw new Error('find returned no row, although it always returns its snapshot')
  const nextDue = header[3]
  return {
    snapshot: parseSnapshot(header[0] as string),
    started: header[1] as string,
    hit: header[2] === 't',
    nextDueMs: nextDue === null || nextDue === undefined ? null : Number(nextDue),
    lanes: readLanes(rows, 4, 5, firstEventColumn),
  }
}

/** `xmin:xmax:xip,xip,...` as PostgreSQL prints a snapshot. */
export function parseSnapshot(text: string): Snapshot {
  const [, xmax = '', inProgress = ''] = text.split(':')
  return { xmax, inProgress: inProgress === '' ? [] : inProgress.split(',') }
}

/** Groups the rows of an answer by lane and puts each lane in id order, which a join does not promise. */
export function readLanes(
  rows: readonly Row[],
  laneColumn: number,
  firstColumn: number,
  eventColumn: number,
): LaneRows[] {
  const lanes = new Map<string, { lane: string; first: string | null; rows: EventRow[] }>()
  for (const row of rows) {
    const lane = row[laneColumn] as string | null
    if (lane === null) continue
    let group = lanes.get(lane)
    if (group === undefined) {
      group = { lane, first: row[firstColumn] as string | null, rows: [] }
      lanes.set(lane, group)
    }
    const event = readEventRow(row, eventColumn)
    if (event !== undefined) group.rows.push(event)
  }
  for (const group of lanes.values()) group.rows.sort((a, b) => compareIds(a.id, b.id))
  return [...lanes.values()]
}
