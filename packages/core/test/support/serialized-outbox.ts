import { freshDatabase } from '@inorder/harness'
import pg from 'pg'
import { expect } from 'vitest'
import { fromPg, type PgClient, type PgPool } from '../../src/clients/from-pg.ts'
import { createOutbox, type Outbox } from '../../src/outbox.ts'

/** An outbox whose writers of a key wait for each other, and the means to see who waits. */
export interface SerializedOutbox extends AsyncDisposable {
  readonly pool: pg.Pool
  readonly outbox: Outbox<PgClient, PgPool | PgClient>
  /** A client with a transaction open. What is open on it at the end is rolled back. */
  readonly begin: (level?: string) => Promise<pg.PoolClient>
  /** Resolves when this client waits for an advisory lock. */
  waits(client: pg.PoolClient): Promise<void>
  /** From now on this client fails with 55P03 where it would have to wait. */
  refuseToWait(client: pg.PoolClient): Promise<void>
  /** The payloads in the order of their ids. */
  readonly payloads: () => Promise<string[]>
}

/** In a database of its own, or in that of the file with what was there before deleted. */
export async function serializedOutbox(url?: string): Promise<SerializedOutbox> {
  const pool = new pg.Pool({ connectionString: url ?? (await freshDatabase()), max: 45 })
  pool.on('error', () => undefined)
  const outbox = createOutbox({ client: fromPg(pool), serializeWrites: true })
  await outbox.migrate()
  await pool.query('delete from outbox.events')
  const lent = new Set<pg.PoolClient>()
  return {
    pool,
    outbox,
    async begin(level = 'read committed') {
      const client = await pool.connect()
      lent.add(client)
      await client.query(`begin isolation level ${level}`)
      return client
    },
    async waits(client) {
      const { processID } = client as pg.PoolClient & { processID: number }
      const waiting = async (): Promise<number> => {
        const { rows } = await pool.query(
          `select 1 from pg_locks where pid = $1 and locktype = 'advisory' and not granted`,
          [processID],
        )
        return rows.length
      }
      await expect.poll(waiting, { timeout: 20_000 }).toBe(1)
    },
    async refuseToWait(client) {
      await client.query(`set local lock_timeout = '1ms'`)
    },
    async payloads() {
      const { rows } = await pool.query<{ payload: Buffer }>('select payload from outbox.events order by id')
      return rows.map(({ payload }) => payload.toString())
    },
    async [Symbol.asyncDispose]() {
      await outbox.close()
      // Ends what a failed test left waiting, too.
      for (const client of lent) client.release(true)
      await pool.end()
    },
  }
}

/** An event of a key. */
export function of(key: string | null, payload = 'x'): { topic: string; key: string | null; payload: Buffer } {
  return { topic: 'orders', key, payload: Buffer.from(payload) }
}
