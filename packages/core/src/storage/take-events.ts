import type { Row } from '../contract/sql-client.ts'
import { criteriaValues, type EventCriteria, filterSql } from './event-filter.ts'
import type { Names } from './names.ts'
import { type AuditEntry, auditValues } from './record-audit.ts'
import { readArray } from './settle.ts'

/** What every statement of a verb is given, beside what is its own. */
export interface TakeParameters {
  readonly criteria: EventCriteria
  /** At most as many as one transaction should change, in id order. */
  readonly ids: readonly string[]
  /** Lanes of which an earlier event could not be taken. */
  readonly shut: readonly string[]
  readonly audit: AuditEntry
}

export interface Taken {
  /** False when the statement of another operator was running: nothing was looked at. */
  readonly mine: boolean
  readonly changed: number
  /** Events that are locked by someone else, or stand behind one that is in their lane. */
  readonly skipped: readonly string[]
  readonly skippedLanes: readonly string[]
  /** Lanes out of which something was taken that may have blocked them, and the first id that went. */
  readonly opened: OpenedLanes
}

export interface OpenedLanes {
  readonly lanes: readonly string[]
  readonly after: readonly string[]
}

/**
 * The beginning of a verb's statement: locks the events that are given, still meant, and free. `taken` has them.
 *
 * Parameters: $1 to $14 the filter, $15 name of the lock, $16 ids, $17 shut lanes, $18 action, $19 actor, $20 verb, $21
 * filter as JSON. Index: primary key. Locks: the rows, in id order, skipping locked ones, so that a verb waits for
 * nobody and cannot deadlock; and one advisory lock for the length of the statement.
 *
 * - Two operators take turns, one statement each: whoever does not get the lock is told so and asks again. Without it
 *   two that do the same thing meet locked rows all the time.
 * - `in order` also leaves alone what stands behind a skipped event of its lane: otherwise it would go out before that.
 *   A row that somebody changed since the snapshot counts as skipped as well; a second look tells them apart.
 * - No joins: the planner knows nothing of the sizes of these lists, and two of 10,000 in nested loops take 10 s.
 */
export function takeSql(names: Names, order: 'in order' | 'in any order'): string {
  const events = names.table('events')
  const free = order === 'in order' ? 'locked and (first_left is null or id < first_left)' : 'locked'
  return `with turn as materialized (select pg_try_advisory_xact_lock(hashtextextended($15::text, 9)) mine),
l as materialized (
  select e.id, e.lane, e.status, e.attempts from ${events} e
  where (select mine from turn) and e.id = any(array(select unnest($16::bigint[]))) and ${filterSql(names)} order by e.id for update skip locked),
s as materialized (
  select e.id, e.lane from ${events} e
  where (select mine from turn) and (select count(*) from l) < cardinality($16::bigint[])
    and e.id = any(array(select unnest($16::bigint[]))) and ${filterSql(names)}),
k as materialized (
  select k.*, min(id) filter (where not locked) over (partition by lane) first_left from (
    select id, lane, max(status) status, max(attempts) attempts, bool_or(locked) locked from (
      select id, lane, status, attempts, true locked from l
      union all select id, lane, null, null, false from s
      union all select -1, lane, null, null, false from unnest($17::bigint[]) lane) k
    group by id, lane) k),
taken as materialized (select id, lane, status, attempts from k where ${free}),
skipped as materialized (select id, lane from k where id >= 0 and (${free}) is not true)`
}

/** The first columns of the answer, from `turn` and the changed rows `u`. */
export const takenColumns = `(select mine from turn), (select count(*) from u),
  (select array_agg(id order by id) from skipped), (select array_agg(lane order by id) from skipped)`

/** Writes what `u` changed into the audit, with a detail of the verb's own. */
export function auditSql(names: Names, detail = `'{}'`): string {
  return `record as (insert into ${names.table('audit')} (action, actor, verb, filter, affected, detail)
  select $18::uuid, $19, $20, $21::jsonb, count(*), ${detail} from u having count(*) > 0)`
}

export function takeValues(names: Names, { criteria, ids, shut, audit }: TakeParameters): readonly unknown[] {
  return [...criteriaValues(criteria), `inorder:${names.schema}`, ids, shut, ...auditValues(audit)]
}

export function readTaken(rows: readonly Row[]): Taken {
  const [mine, changed, skipped, skippedLanes, lanes, after] = rows[0] ?? []
  return {
    mine: mine === 't',
    changed: Number(changed),
    skipped: readArray(skipped),
    skippedLanes: readArray(skippedLanes),
    opened: { lanes: readArray(lanes), after: readArray(after) },
  }
}
