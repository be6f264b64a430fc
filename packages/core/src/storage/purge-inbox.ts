import type { Row, Statement } from '../contract/sql-client.ts'
import type { Names } from './names.ts'
import { maxPurge } from './purge.ts'

export interface PurgeInboxParameters {
  readonly consumer: string
  /** How long an event id is remembered, in ms. It must be longer than anything can still be sent again. */
  readonly retentionMs: number
  /** Rows in this call, at most 10,000. */
  readonly limit: number
}

/**
 * Forgets the oldest event ids of a consumer whose retention is over.
 *
 * Parameters: $1 consumer, $2 retention in ms, $3 rows. Index: `processed`, in its order. Locks: the rows, skipping
 * locked ones, and one advisory lock for the consumer until the end of the transaction: a second purger of the same
 * consumer does nothing. Answers with the number of rows, or null when another purger is at it.
 *
 * Deleted by `ctid`, which cannot change while the row is locked: the primary key begins with the consumer, so a list of
 * event ids would be no better.
 */
export function purgeInboxStatement(names: Names): (parameters: PurgeInboxParameters) => Statement {
  const processed = names.table('processed_events')
  const text = `with turn as materialized (select pg_try_advisory_xact_lock(hashtextextended($4::text, 11)) mine),
x as materialized (
  select c from (
    select ctid c from ${processed}
    where (select mine from turn) and consumer = $1::text and processed_at < now() - $2::float8 * interval '1 ms'
    order by consumer, processed_at limit ${String(maxPurge)} for update skip locked) x
  limit (select $3::int)),
d as (delete from ${processed} p where p.ctid = any(array(select c from x)) returning 1)
select (select mine from turn), (select count(*) from d)`
  return ({ consumer, retentionMs, limit }) => ({
    text,
    values: [consumer, retentionMs, limit, `inorder:${names.schema}:${consumer}`],
  })
}

export function readPurgedInbox(rows: readonly Row[]): number | null {
  const [mine, deleted] = rows[0] ?? []
  return mine === 't' ? Number(deleted) : null
}
