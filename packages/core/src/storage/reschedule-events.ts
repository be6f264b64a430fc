import type { Statement } from '../contract/sql-client.ts'
import type { Names } from './names.ts'
import { auditSql, takenColumns, takeSql, type TakeParameters, takeValues } from './take-events.ts'

/**
 * Gives pending and scheduled events another time, or puts those that wait in line at once.
 *
 * Parameters, locks and index: see `takeSql`; $22 the time, null for at once.
 *
 * - At a time: an event that was never tried becomes `scheduled` and leaves its lane's way; one that was tried stays
 *   `pending` and its lane waits for it. `due` promotes both.
 * - At once: what waits is stamped, so that the next find meets it. The filter leaves out what is in line already.
 *
 * Answers with the lanes that an untried event left: see `discardStatement`.
 */
export function rescheduleStatement(names: Names): (parameters: TakeParameters, at: string | null) => Statement {
  const text = `${takeSql(names, 'in order')},
u as (update ${names.table('events')} e
  set status = case when $22::timestamptz is null or e.attempts > 0 then 'pending' else 'scheduled' end, available_at = $22::timestamptz,
    xid = case when $22::timestamptz is null then pg_current_xact_id() else e.xid end,
    ready_at = case when e.attempts > 0 then e.ready_at else coalesce($22::timestamptz, now()) end
  where e.id = any(array(select id from taken)) returning e.id),
${auditSql(names, `jsonb_build_object('at', $22::timestamptz)`)},
o as materialized (select lane, min(id) id from taken where $22::timestamptz is not null and status = 'pending' and attempts = 0 group by lane)
select ${takenColumns}, (select array_agg(lane order by lane) from o), (select array_agg(id order by lane) from o)`
  return (parameters, at) => ({ text, values: [...takeValues(names, parameters), at] })
}
