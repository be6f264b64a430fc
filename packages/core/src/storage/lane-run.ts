import { eventRowColumns } from './event-row.ts'
import type { Names } from './names.ts'

/** Most rows of one lane in one answer. A literal in the text, so that it caps the planner's estimate. */
export const maxRowsOfALane = 1000

/**
 * Reads the run of each lane in `l(lane, low, n)`: rows in id order from `low`, at most `n`, ending before the first
 * that is held, waits for its retry or belongs to a held topic. A fragment of find and sweep.
 *
 * Index: `lane`. Neither column is fixed by equality, so the order can only come from this index and the scan ends
 * with the lane. The window count stops the scan at the first row that blocks, so a blocked lane costs one index entry
 * (before PostgreSQL 15, up to the limit).
 *
 * Both limits are needed: the literal caps the estimate (the plan stays below the threshold of JIT), the value that
 * the planner cannot see makes it prefer the path that is already in order over a bitmap and a sort (102k buffers and
 * 995 ms, against 53k and 585 ms for the same rows).
 */
export function laneRunSql(names: Names, topics: string): string {
  return `left join lateral (
    select ${eventRowColumns}
    from (select x.*, count(*) filter (where x.status = 'held' or x.available_at is not null or x.topic = any(l.held_topics))
                      over (order by x.lane, x.id rows unbounded preceding) stop
          from (select * from (
                  select * from ${names.table('events')} x
                  where x.status in ('pending', 'held') and (x.lane, x.id) >= (l.lane, l.low) and x.lane <= l.lane
                    and (${topics}::text[] is null or x.topic = any(${topics}::text[]))
                  order by x.lane, x.id limit ${String(maxRowsOfALane)}) x
                order by x.lane, x.id limit l.n) x) e
    where e.stop = 0) e on true`
}

/** What operators stopped: one row with both lists, null when nothing is held. A fragment of find and sweep. */
export function holdsSql(names: Names): string {
  return `select array_agg(topic) filter (where topic is not null) topics, array_agg(lane) filter (where lane is not null) lanes from ${names.table('holds')}`
}
