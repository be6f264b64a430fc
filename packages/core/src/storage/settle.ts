import type { Row, Statement } from '../contract/sql-client.ts'
import { type Names, statementName } from './names.ts'

/** What became of one event. */
export interface SettleEntry {
  readonly id: string
  readonly eventId: string
  /** Attempts and requeues as they were when the event was read: a failure is written only where they still are. */
  readonly attempts: number
  readonly requeues: number
  /** Absent for an acknowledged event. */
  readonly failure?: SettleFailure
}

export interface SettleFailure {
  readonly outcome: string
  readonly error: string
  readonly retryInMs: number
  /** Absent when the event is tried again. */
  readonly end?: 'failed' | 'held'
}

export interface SettleParameters {
  readonly group: string
  readonly owner: string
  readonly slots: readonly { readonly slot: number; readonly epoch: string }[]
  readonly entries: readonly SettleEntry[]
}

export interface Settled {
  readonly published: ReadonlySet<string>
  readonly counted: ReadonlySet<string>
  readonly owned: ReadonlySet<number>
  /** Ids that are done with, whatever became of them. One missing here is locked by someone else: settle it again. */
  readonly closed: ReadonlySet<string>
}

/**
 * Writes a batch of outcomes.
 *
 * Parameters: $1 group, $2 owner, $3 and $4 slots of this batch and their epochs, then one entry per event: $5 id, $6
 * event id, $7 and $8 expected attempts and requeues, $9 error (null is acknowledged), $10 retry after ms, $11
 * `failed`, `held` or null, $12 outcome. Index: primary key. Locks: the rows, in id order, skipping locked ones.
 *
 * - An acknowledgement is a fact and is written whoever owns the slot now. A failure is written only while the slot is
 *   owned under the same epoch.
 * - Both are written only where attempts are as expected. So a failure that is sent again after a lost answer counts
 *   once. And an event of which a later owner has counted a failure keeps its retry, although the broker acknowledged it
 *   to an earlier one: the owner left its lane to that retry, and without it nobody would come back for what is behind.
 * - Matched on the event id too: after a failover ids come back, and an id alone would mark another event. And on the
 *   requeues: a late acknowledgement says nothing about an event that was put back in line since.
 * - No test of the status beside the ids: with it the planner intersected the primary key with all of `arrival`
 *   (1,000 ids: 63 ms, without 17). The status is tested on the locked row.
 * - An event that has ended already as this entry says is reported as counted: the answer that said so was lost, and
 *   somebody has to be told of its end.
 * - A row that somebody deleted is told from one that is locked, or its lane would wait for it for ever.
 * - The last 20 failures of an event are kept, for the people who ask why.
 */
export function settleStatement(
  names: Names,
  acknowledged: Acknowledged = 'kept',
): (parameters: SettleParameters) => Statement {
  const events = names.table('events')
  const text = `with x as materialized (
  select * from unnest($5::bigint[], $6::uuid[], $7::int[], $8::int[], $9::text[], $10::float8[], $11::text[], $12::text[]) x(id, event_id, attempts, requeues, error, ms, fin, outcome)),
own as materialized (${ownedSlotsSql(names)}),
lck as materialized (
  select e.id, e.event_id, e.lane, e.status, e.attempts, e.requeues from ${events} e where e.id = any(array(select id from x)) order by e.id for update skip locked),
m as materialized (
  select x.id, x.error, x.ms, x.fin, x.outcome from lck join x using (id, event_id) where lck.status = 'pending' and lck.requeues = x.requeues and lck.attempts = x.attempts
    and (x.error is null or ((lck.lane >> 56) + 128)::int = any(array(select slot from own)))),
p as (${publishedSql(names, acknowledged)}
  where e.id = any(array(select id from m where error is null)) returning e.id)${forgetFailuresSql(names, acknowledged)},
f as (update ${events} e set attempts = e.attempts + (e.attempts < 2147483647)::int, last_error = m.error, status = coalesce(m.fin, 'pending'),
    failed_at = case when m.fin is not null then now() end, available_at = case when m.fin is null then now() + m.ms * interval '1 ms' end
  from m where e.id = any(array(select id from m where error is not null)) and m.id = e.id and m.error is not null
  returning e.id, e.attempts, e.requeues, m.error, m.outcome),
again as (select x.id from lck join x using (id, event_id) where lck.status = x.fin and lck.attempts = x.attempts + 1 and lck.requeues = x.requeues),
history as (insert into ${names.table('failures')} (event, at, requeues, attempt, relay, outcome, error)
  select f.id, clock_timestamp(), f.requeues, f.attempts, $2, f.outcome, f.error from f),
forgotten as (delete from ${names.table('failures')} old using (
    select f.id, (select kept.at from ${names.table('failures')} kept where kept.event = f.id order by kept.at desc offset 18 limit 1) oldest from f) keep
  where old.event = keep.id and old.at < keep.oldest)
select (select array_agg(id) from p), (select array_agg(id) from (select id from f union all select id from again) c), (select array_agg(slot) from own), (select array_agg(id) from lck),
  case when (select count(*) from lck) < cardinality($5) then (
    select array_agg(id) from unnest($5::bigint[]) given(id)
    where not given.id = any(array(select e.id from ${events} e where e.id = any(array(select id from x))))) end`
  const name = statementName('settle', text)
  return ({ entries, ...batch }) => ({
    name,
    text,
    values: [
      ...ownedSlotsValues(batch),
      entries.map(({ id }) => id),
      entries.map(({ eventId }) => eventId),
      entries.map(({ attempts }) => attempts),
      entries.map(({ requeues }) => requeues),
      entries.map(({ failure }) => failure?.error ?? null),
      entries.map(({ failure }) => failure?.retryInMs ?? null),
      entries.map(({ failure }) => failure?.end ?? null),
      entries.map(({ failure }) => failure?.outcome ?? null),
    ],
  })
}

/** Whether an acknowledged event stays as a published row until it is purged, or is deleted at once. */
export type Acknowledged = 'kept' | 'deleted'

/** The beginning of the statement that takes acknowledged events `e` out of line. A fragment of both settles. */
export function publishedSql(names: Names, acknowledged: Acknowledged, using = ''): string {
  const events = names.table('events')
  if (acknowledged === 'deleted') return `delete from ${events} e${using === '' ? '' : ` using ${using}`}`
  return `update ${events} e set status = 'published', published_at = clock_timestamp(), available_at = null${using === '' ? '' : ` from ${using}`}`
}

/** The history of an event goes with it. A fragment of both settles, behind `p`. */
export function forgetFailuresSql(names: Names, acknowledged: Acknowledged): string {
  if (acknowledged === 'kept') return ''
  return `,
gone as (delete from ${names.table('failures')} x using p where x.event = p.id)`
}

/** Which slots of the batch are still owned under the epoch they were read with: $1 to $4. A fragment of both settles. */
export function ownedSlotsSql(names: Names): string {
  return `
  select s.slot from ${names.table('slots')} s where s.relay_group = $1 and s.owner = $2 and (s.slot, s.epoch) in (select * from unnest($3::int[], $4::bigint[]))`
}

export function ownedSlotsValues({ group, owner, slots }: Omit<SettleParameters, 'entries'>): readonly unknown[] {
  return [group, owner, slots.map(({ slot }) => slot), slots.map(({ epoch }) => epoch)]
}

export function readSettled(rows: readonly Row[]): Settled {
  const [published, counted, owned, locked, gone] = rows[0] ?? []
  return {
    published: new Set(readArray(published)),
    counted: new Set(readArray(counted)),
    owned: new Set(readArray(owned).map(Number)),
    closed: new Set([...readArray(locked), ...readArray(gone)]),
  }
}

/** A PostgreSQL array of numbers as text: `{1,2}`, or null. */
export function readArray(value: Row[number] | undefined): string[] {
  return typeof value === 'string' && value.length > 2 ? value.slice(1, -1).split(',') : []
}
