import type { Statement } from '../contract/sql-client.ts'
import type { Names } from './names.ts'
import { auditSql, takenColumns, takeSql, type TakeParameters, takeValues } from './take-events.ts'

/**
 * Deletes events for good, with their failures. The audit keeps their ids.
 *
 * Parameters, locks and index: see `takeSql`; the failures by their primary key. A row of `failures` is only ever
 * written by whoever has its event locked.
 *
 * Answers with the lanes out of which something in line went: what stood behind it was passed over by every find until
 * now, and no find looks again by itself. `stampLanesStatement` names those lanes, in a transaction of its own.
 */
export function discardStatement(names: Names): (parameters: TakeParameters) => Statement {
  const detail = `jsonb_build_object('ids', jsonb_agg(id::text order by id), 'eventIds', jsonb_agg(event_id order by id))`
  const text = `${takeSql(names, 'in any order')},
u as (delete from ${names.table('events')} e where e.id = any(array(select id from taken)) returning e.id, e.event_id, e.lane, e.status),
forgotten as (delete from ${names.table('failures')} f where f.event = any(array(select id from taken))),
${auditSql(names, detail)},
o as materialized (select lane, min(id) id from u where status in ('pending', 'held') group by lane)
select ${takenColumns}, (select array_agg(lane order by lane) from o), (select array_agg(id order by lane) from o)`
  return (parameters) => ({ text, values: takeValues(names, parameters) })
}
