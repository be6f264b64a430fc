import { freshDatabase } from '@inorder/harness'
import pg from 'pg'
import { expect } from 'vitest'
import { fromPg, type PgClient } from '../../src/clients/from-pg.ts'
import { createInbox, type Inbox, type Processed } from '../../src/consume/inbox.ts'

export interface Deposit {
  readonly level?: string
  readonly by?: string
  /** Runs inside the effect, after the balance was raised. */
  readonly then?: (tx: pg.PoolClient) => Promise<void>
}

/** A consumer whose effect is to add one to a balance. */
export interface InboxAccount extends AsyncDisposable {
  readonly pool: pg.Pool
  readonly inbox: Inbox<PgClient>
  balance(): Promise<number>
  /** Which consumers have noted the event. */
  noted(eventId: string): Promise<string[]>
  /** Processes the event in a transaction of its own. The consumer is `billing` unless `by` says another. */
  deposit(eventId: string, how?: Deposit): Promise<Processed<number>>
  /** Resolves when so many sessions of this database wait for the end of another transaction. */
  waiting(sessions: number): Promise<void>
}

export async function inboxAccount(): Promise<InboxAccount> {
  const pool = new pg.Pool({ connectionString: await freshDatabase(), max: 30 })
  pool.on('error', () => undefined)
  pool.on('connect', (client) => client.on('error', () => undefined))
  const inbox = createInbox({ client: fromPg(pool) })
  await inbox.migrate()
  await pool.query('create table account (balance int); insert into account values (0)')
  return {
    pool,
    inbox,
    async balance() {
      const { rows } = await pool.query<{ balance: number }>('select balance from account')
      return rows[0]?.balance ?? Number.NaN
    },
    async noted(eventId) {
      const { rows } = await pool.query<{ consumer: string }>(
        'select consumer from outbox.processed_events where event_id = $1 order by consumer',
        [eventId],
      )
      return rows.map(({ consumer }) => consumer)
    },
    async deposit(eventId, { level = 'read committed', by = 'billing', then } = {}) {
      const client = await pool.connect()
      try {
        await client.query(`begin isolation level ${level}`)
        const processed = await inbox.processOnce(client, { consumer: by, eventId }, async () => {
          await client.query('update account set balance = balance + 1')
          await then?.(client)
          return 1
        })
        await client.query('commit')
        client.release()
        return processed
      } catch (error) {
        await client.query('rollback').catch(() => undefined)
        client.release(true)
        throw error
      }
    },
    async waiting(sessions) {
      const look = async (): Promise<number | null> => {
        const { rowCount } = await pool.query(
          `select 1 from pg_stat_activity where datname = current_database() and wait_event = 'transactionid'`,
        )
        return rowCount
      }
      await expect.poll(look, { timeout: 20_000 }).toBe(sessions)
    },
    [Symbol.asyncDispose]: () => pool.end(),
  }
}
