import type pg from 'pg'

// The business table of a campaign, and a witness beside the outbox. Both owe nothing to the library.

const setupSql = `
create schema campaign;
create table campaign.bookings (tx text primary key, event_ids uuid[] not null, xid xid8 not null default pg_current_xact_id());
create table campaign.revived (event_id uuid not null, status text not null, at timestamptz not null default clock_timestamp());
create function campaign.note_revival() returns trigger language plpgsql as $$
begin
  insert into campaign.revived (event_id, status) values (new.event_id, new.status);
  return null;
end $$;
create trigger note_revival after update of status on outbox.events
  for each row when (old.status = 'published' and new.status <> 'published') execute function campaign.note_revival();`

/** Needs the outbox: a trigger on its table notes every published row that changes its status again. */
export async function createBusinessTables(db: pg.Pool): Promise<void> {
  await db.query(setupSql)
}

/** The one business row of a transaction. */
export async function book(tx: Pick<pg.ClientBase, 'query'>, name: string, eventIds: readonly string[]): Promise<void> {
  await tx.query('insert into campaign.bookings (tx, event_ids) values ($1, $2::uuid[])', [name, eventIds])
}

/** A transaction that the database has. */
export interface Booking {
  readonly eventIds: readonly string[]
  /** When it was committed, in microseconds since 1970; needs `track_commit_timestamp`. */
  readonly committedAt: bigint
}

export async function readBookings(db: pg.Pool): Promise<Map<string, Booking>> {
  const { rows } = await db.query<{ tx: string; event_ids: string[]; committed_at: string }>(
    `select tx, event_ids::text[], (extract(epoch from pg_xact_commit_timestamp(xid::xid)) * 1000000)::bigint::text committed_at
from campaign.bookings`,
  )
  return new Map(
    rows.map(({ tx, event_ids, committed_at }) => [tx, { eventIds: event_ids, committedAt: BigInt(committed_at) }]),
  )
}

/** Events that were published and then were not. */
export async function readRevived(db: pg.Pool): Promise<string[]> {
  const { rows } = await db.query<{ event_id: string; status: string }>(
    'select event_id::text, status from campaign.revived',
  )
  return rows.map(({ event_id, status }) => `${event_id} (${status})`)
}
