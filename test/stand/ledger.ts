import type { Enqueued } from '@inorder/core'
import type pg from 'pg'
import type { Written } from './order-proof.ts'

// The business tables of the stand. What they say was written owes nothing to the outbox: it is the other side of the
// comparison.

const setupSql = `
create schema stand;
create table stand.accounts (key text primary key, events integer not null);
create table stand.bookings (
  id bigint generated always as identity primary key,
  writer text not null,
  key text not null references stand.accounts,
  first integer not null,
  event_ids uuid[] not null,
  unique (key, first)
);`

export async function createLedger(db: pg.Pool, keys: number): Promise<void> {
  await db.query(setupSql)
  await db.query(`insert into stand.accounts select 'key-' || k, 0 from generate_series(1, $1) k`, [keys])
}

/** Locks the key's row until the transaction ends, so that its transactions commit one after the other. */
export async function lockKey(tx: pg.ClientBase, key: string): Promise<number> {
  const { rows } = await tx.query<{ events: number }>('select events from stand.accounts where key = $1 for update', [
    key,
  ])
  return rows[0]?.events ?? 0
}

/** The one business row of a transaction: which events it wrote for its key, and in which order. */
export async function book(
  tx: pg.ClientBase,
  booking: { writer: string; key: string; before: number; events: readonly Enqueued[] },
): Promise<void> {
  const { writer, key, before, events } = booking
  await tx.query('insert into stand.bookings (writer, key, first, event_ids) values ($1, $2, $3, $4::uuid[])', [
    writer,
    key,
    before + 1,
    events.map(({ eventId }) => eventId),
  ])
  await tx.query('update stand.accounts set events = events + $2 where key = $1', [key, events.length])
}

export async function readWritten(db: pg.Pool): Promise<Written[]> {
  const { rows } = await db.query<{ key: string; first: number; event_ids: string[] }>(
    'select key, first, event_ids::text[] from stand.bookings order by key, first',
  )
  return rows.flatMap(({ key, first, event_ids }) =>
    event_ids.map((eventId, index) => ({ eventId, key, position: first + index })),
  )
}
