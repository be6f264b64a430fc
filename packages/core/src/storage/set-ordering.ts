import type { Ordering } from '../contract/event.ts'
import type { Row, Statement } from '../contract/sql-client.ts'
import type { Names } from './names.ts'
import { type AuditEntry, recordStatement } from './record-audit.ts'

/**
 * Changes the mode of the outbox: the default of the column, which every INSERT follows that names no ordering, and the
 * settings, which those follow that do and the SQL function.
 *
 * Statements of one transaction; the state is read between those that lock and those that change. Locks: both tables, ACCESS
 * EXCLUSIVE, so that nobody writes in between and the check of what is in line is exact. Writers queue behind it, so it
 * waits for `lock_timeout` only and then fails with 55P03; the caller tries again after it let them pass. The settings
 * first, as a writer that serialises its keys does: its lock on them lasts until it has written its events, so none
 * takes the lock of one mode and writes an event of the other.
 */
export function setOrderingStatements(
  names: Names,
  ordering: Ordering,
  lockTimeoutMs: number,
  audit: AuditEntry,
): { readonly lock: readonly Statement[]; readonly change: readonly Statement[] } {
  const settings = names.table('settings')
  return {
    lock: [
      { text: `select set_config('lock_timeout', $1, true)`, values: [`${String(lockTimeoutMs)}ms`] },
      { text: `lock table ${settings}, ${names.table('events')} in access exclusive mode`, values: [] },
    ],
    change: [
      { text: `alter table ${names.table('events')} alter column ordering set default '${ordering}'`, values: [] },
      { text: `update ${settings} set ordering = $1`, values: [ordering] },
      recordStatement(names, audit, 1),
    ],
  }
}

/** The mode, and what speaks against changing it. */
export interface OrderingState {
  readonly ordering: Ordering
  /** Something waits in line, or for its time. */
  readonly drained: boolean
  /** Groups with a live relay, and the topics that they serve; null is all. */
  readonly groups: readonly { readonly group: string; readonly topics: readonly string[] | null }[]
}

/** No parameters. Indexes: `lane` and `waiting`, one probe each. Locks: none. */
export function orderingStateStatement(names: Names): Statement {
  const events = names.table('events')
  return {
    text: `select s.ordering,
  not exists (select 1 from (select 1 from ${events} line where status in ('pending', 'held') order by lane, id limit 1) e)
    and not exists (select 1 from (select 1 from ${events} later where available_at is not null order by available_at, id limit 1) e),
  (select jsonb_agg(jsonb_build_object('group', g.relay_group, 'topics', g.topics)) from (
    select t.relay_group, case when bool_or(t.topic is null) then null else array_agg(t.topic order by t.topic) end topics
    from ${names.table('group_topics')} t
    where exists (select 1 from ${names.table('relays')} r where r.relay_group = t.relay_group and r.expires_at > clock_timestamp())
    group by t.relay_group order by t.relay_group) g)
from ${names.table('settings')} s`,
    values: [],
  }
}

export function readOrderingState(rows: readonly Row[]): OrderingState {
  const [ordering, drained, groups] = rows[0] ?? []
  return {
    ordering: ordering as Ordering,
    drained: drained === 't',
    groups: typeof groups === 'string' ? (JSON.parse(groups) as OrderingState['groups']) : [],
  }
}
