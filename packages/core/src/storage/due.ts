import type { Statement } from '../contract/sql-client.ts'
import { type Names, statementName } from './names.ts'

/** Most events that one call puts in line. */
const maxDue = 1000

/**
 * Puts in line what time has made ready: untried scheduled events, and tried ones whose backoff is over. The only
 * statement of the whole outbox that compares a clock. Repeat at once when it changed `$1` rows.
 *
 * Parameter: $1 rows (at most 1000). Indexes: `waiting`, then the primary key. Locks: the rows it changes; rows locked
 * by someone else are left to a later call.
 *
 * The new `xid` makes the next find see them as arrivals. The ids go through an array because a join is estimated at a
 * tenth of the table and can become a hash join over all of it.
 */
export function dueStatement(names: Names): () => Statement {
  const events = names.table('events')
  const text = `with w as materialized (
  select id from (
    select id from ${events} where available_at <= now() order by available_at, id limit ${String(maxDue)} for update skip locked) w
  limit (select $1::int))
update ${events} e set status = 'pending', available_at = null, xid = pg_current_xact_id(),
  ready_at = case when e.status = 'scheduled' then e.available_at else e.ready_at end
where e.id = any(array(select id from w))`
  const name = statementName('due', text)
  return () => ({ name, text, values: [maxDue] })
}
