import type { Statement } from '../contract/sql-client.ts'
import type { Names } from './names.ts'
import { auditSql, takenColumns, takeSql, type TakeParameters, takeValues } from './take-events.ts'

/**
 * Puts failed, held or published events back in line, as if they had never been tried: requeue and replay.
 *
 * Parameters, locks and index: see `takeSql`. One transaction id stamps all of them, so the first find after the commit
 * meets every one as an arrival. No second transaction is needed: the row that leaves its lane's way is itself put in
 * line, and names the lane.
 *
 * - `requeues` is part of the broker's dedupe id, without which the broker would drop what it has seen already, and of
 *   what a settle expects: a late outcome of the earlier life writes nothing. It stops at the largest integer.
 * - The last error and the failures stay: they are the event's history.
 */
export function requeueStatement(names: Names): (parameters: TakeParameters) => Statement {
  const text = `${takeSql(names, 'in order')},
u as (update ${names.table('events')} e
  set status = 'pending', attempts = 0, requeues = e.requeues + (e.requeues < 2147483647)::int, xid = pg_current_xact_id(),
    available_at = null, failed_at = null, published_at = null, ready_at = now()
  where e.id = any(array(select id from taken)) returning e.id),
${auditSql(names)}
select ${takenColumns}, null, null`
  return (parameters) => ({ text, values: takeValues(names, parameters) })
}
