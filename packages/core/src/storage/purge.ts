import type { Row, Statement } from '../contract/sql-client.ts'
import type { Names } from './names.ts'

/** Most rows that one call deletes. A literal in the text, so that it caps the planner's estimate. */
export const maxPurge = 10_000

export interface Purged {
  /** False when another purger was at it: nothing was looked at. */
  readonly mine: boolean
  readonly deleted: number
  /** Time of the last row that went, as text of the session. */
  readonly reached: string | undefined
}

/**
 * Deletes the oldest published events whose retention is over, with their failures. Nothing but published rows.
 *
 * Parameters: $1 retention in ms, $2 rows (at most 10,000; 1,000 are gone in some 10 ms), $3 `reached` of the call before
 * or null, $4 name of the lock. Index: `published`, in its order; the failures by
 * their primary key. Locks: the rows, skipping locked ones, and one advisory lock until the end of the transaction.
 *
 * - One call is one transaction, so no lock lasts. A second purger finds the advisory lock taken and does nothing; if
 *   two ever met, they would pass each other's rows over and could not deadlock.
 * - `$3` because index entries of deleted rows stay until vacuum, and cost a look at the table each while anybody's old
 *   snapshot pins them: without it, the call number n passes those of n - 1 calls.
 * - No prepared statement: a plan made for an empty `failures` would read all of it for ever.
 */
export function purgeStatement(names: Names): (retentionMs: number, limit: number, from?: string) => Statement {
  const events = names.table('events')
  const text = `with turn as materialized (select pg_try_advisory_xact_lock(hashtextextended($4::text, 10)) mine),
x as materialized (
  select id, published_at from (
    select id, published_at from ${events}
    where (select mine from turn) and status = 'published' and published_at < now() - $1::float8 * interval '1 ms'
      and published_at >= coalesce($3::timestamptz, '-infinity')
    order by published_at limit ${String(maxPurge)} for update skip locked) x
  limit (select $2::int)),
d as (delete from ${events} e where e.id = any(array(select id from x)) returning e.id),
forgotten as (delete from ${names.table('failures')} f where f.event = any(array(select id from x)))
select (select mine from turn), (select count(*) from d), (select max(published_at)::text from x)`
  return (retentionMs, limit, from) => ({
    text,
    values: [retentionMs, limit, from ?? null, `inorder:${names.schema}`],
  })
}

/** How many published rows are past their retention, at most as many as are counted. $1 retention in ms, $2 rows to count. */
export function countPurgeableStatement(names: Names): (retentionMs: number, limit: number) => Statement {
  const text = `select true, count(*), null from (
  select 1 from (
    select 1 from ${names.table('events')} where status = 'published' and published_at < now() - $1::float8 * interval '1 ms'
    order by published_at limit 1000000) x
  limit (select $2::int)) x`
  return (retentionMs, limit) => ({ text, values: [retentionMs, limit] })
}

export function readPurge(rows: readonly Row[]): Purged {
  const [mine, deleted, reached] = rows[0] ?? []
  return {
    mine: mine === 't',
    deleted: Number(deleted),
    reached: (reached as string | null | undefined) ?? undefined,
  }
}
