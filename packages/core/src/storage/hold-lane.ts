import type { Row, Statement } from '../contract/sql-client.ts'
import type { Names } from './names.ts'
import { type AuditEntry, auditValues } from './record-audit.ts'

/** What can be stopped: a topic, the lane of a key, or a lane by its number. */
export type HoldTarget =
  | { readonly topic: string; readonly key?: undefined }
  | { readonly topic: string; readonly key: string }
  | { readonly lane: string }

/** Target columns: $1 topic, $2 lane or null, $3 key. The lane of a key is computed as the table does. */
const targetSql = `select case when $2::bigint is null and $3::text is null then $1::text end topic,
    coalesce($2::bigint, case when $3::text is not null then hashtextextended($1::text || chr(31) || $3::text, 0) end) lane`

/**
 * Stops a topic or a lane: finds leave it out from their next statement on. What is in flight is still published.
 *
 * Parameters: $1 topic, $2 lane, $3 key, $4 action, $5 actor, $6 verb, $7 filter as JSON, $8 reason. Locks: none that
 * somebody waits for, except two operators who hold the same at once. What is held already keeps its first reason.
 */
export function holdStatement(names: Names): (target: HoldTarget, reason: string, audit: AuditEntry) => Statement {
  const text = `with t as materialized (${targetSql}),
u as (insert into ${names.table('holds')} (topic, lane, lane_topic, lane_key, reason, held_by)
  select topic, lane, case when topic is null then $1::text end, $3::text, $8::text, $5::text from t on conflict do nothing returning 1),
record as (insert into ${names.table('audit')} (action, actor, verb, filter, affected, detail)
  select $4::uuid, $5::text, $6::text, $7::jsonb, count(*), jsonb_build_object('reason', $8::text) from u having count(*) > 0)
select count(*) from u`
  return (target, reason, audit) => ({ text, values: [...targetValues(target), ...auditValues(audit), reason] })
}

/**
 * Ends the hold of a topic or a lane. Parameters: $1 to $7 as in `holdStatement`. Locks: the row of the hold, and the
 * row of the settings when it is a topic.
 *
 * - What was passed over meanwhile is no arrival any more. The end of a topic's hold raises `holds_version` in the same
 *   transaction: heartbeats return it, and whoever reads the new number sweeps with snapshots that see no hold.
 * - A lane is stamped instead, behind this transaction and in one of its own: see `stampLanesStatement`. Answers with it.
 */
export function releaseHoldStatement(names: Names): (target: HoldTarget, audit: AuditEntry) => Statement {
  const text = `with t as materialized (${targetSql}),
u as (delete from ${names.table('holds')} h using t where h.topic = t.topic or h.lane = t.lane returning h.topic, h.lane, h.reason, h.held_by),
v as (update ${names.table('settings')} set holds_version = holds_version + 1 where exists (select 1 from u where topic is not null)),
record as (insert into ${names.table('audit')} (action, actor, verb, filter, affected, detail)
  select $4::uuid, $5::text, $6::text, $7::jsonb, count(*), jsonb_build_object('reason', max(reason), 'heldBy', max(held_by)) from u having count(*) > 0)
select count(*), max(lane) from u`
  return (target, audit) => ({ text, values: [...targetValues(target), ...auditValues(audit)] })
}

/** Whether a topic or a lane is held: $1 to $3 as in `holdStatement`. Locks: none. */
export function heldStatement(names: Names): (target: HoldTarget) => Statement {
  const text = `with t as materialized (${targetSql})
select count(*), max(h.lane) from t join ${names.table('holds')} h on h.topic = t.topic or h.lane = t.lane`
  return (target) => ({ text, values: targetValues(target) })
}

export function readHeld(rows: readonly Row[]): { readonly count: number; readonly lane: string | null } {
  const [count, lane] = rows[0] ?? []
  return { count: Number(count), lane: (lane as string | null | undefined) ?? null }
}

function targetValues(target: HoldTarget): readonly unknown[] {
  return 'lane' in target ? [null, target.lane, null] : [target.topic, null, target.key ?? null]
}
