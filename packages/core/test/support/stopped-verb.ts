import type pg from 'pg'
import type { OperatorStand } from './operator-stand.ts'

/**
 * Stops whatever verb runs next at its audit, in the middle of its transaction: its snapshot is taken, its rows are
 * locked, and nothing is committed.
 */
export async function stopAtAudit(stand: OperatorStand): Promise<{ reached(): Promise<void>; letGo(): Promise<void> }> {
  await stand.pool.query(
    `create function outbox.stop() returns trigger language plpgsql as 'begin perform pg_advisory_xact_lock(4711); return new; end';
     create trigger stop before insert on outbox.audit for each row execute function outbox.stop()`,
  )
  const guard = await stand.pool.connect()
  await guard.query('select pg_advisory_lock(4711)')
  return {
    async reached() {
      const waiting = `select 1 from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())`
      while ((await stand.pool.query(waiting)).rowCount === 0);
    },
    async letGo() {
      await guard.query('select pg_advisory_unlock(4711)')
      guard.release()
    },
  }
}

/** Resolves when the relay has looked once more, with a snapshot from after the call, and found nothing to do. */
export async function lookedAgain(stand: OperatorStand): Promise<void> {
  const seen = stand.signals.length
  const idle = (after: number): Promise<unknown> =>
    stand.signal((signal) => signal.kind === 'idle' && stand.signals.indexOf(signal) >= after)
  await idle(seen)
  await idle(stand.signals.length)
}

export async function lockedRow(pool: pg.Pool, id: string): Promise<pg.PoolClient> {
  const person = await pool.connect()
  await person.query('begin')
  await person.query('select 1 from outbox.events where id = $1 for update', [id])
  return person
}
