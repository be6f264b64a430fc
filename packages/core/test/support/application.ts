import { freshDatabase } from '@inorder/harness'
import pg from 'pg'
import { fromPg, type PgClient, type PgPool, type PgQuery } from '../../src/clients/from-pg.ts'
import { createOutbox, type Outbox } from '../../src/outbox.ts'
import type { EventInput } from '../../src/write/validate-event.ts'

/** An application with a table `orders` beside its outbox. */
export interface Application {
  /** Has room for the outbox. */
  readonly pool: pg.Pool
  /** Has room for one transaction: a client that is not given back would be the last. */
  readonly narrow: pg.Pool
  readonly outbox: Outbox<PgClient, PgPool | PgClient>
  count(table?: string): Promise<number>
  /** Lends a client, and rolls back whatever is open on it. */
  withClient(work: (client: pg.PoolClient) => Promise<void>): Promise<void>
  close(): Promise<void>
}

export const event: EventInput = { topic: 'orders', key: 'a', payload: 1 }

export async function openApplication(): Promise<Application> {
  const url = await freshDatabase()
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  const narrow = new pg.Pool({ connectionString: url, max: 1 })
  const outbox = createOutbox({ client: fromPg(pool) })
  await outbox.migrate()
  await pool.query('create table orders (id bigint primary key)')
  return {
    pool,
    narrow,
    outbox,
    async count(table = 'outbox.events') {
      const { rows } = await pool.query<{ n: number }>(`select count(*)::int n from ${table}`)
      return rows[0]?.n ?? -1
    },
    async withClient(work) {
      const client = await pool.connect()
      try {
        await work(client)
      } finally {
        await client.query('rollback')
        client.release()
      }
    },
    async close() {
      await outbox.close()
      await Promise.all([pool.end(), narrow.end()])
    },
  }
}

/** A client as an older release of pg has it: nothing says whether a transaction is open. */
export function withoutStatus(client: PgClient): PgClient {
  return { query: (config) => client.query(config) }
}

/** A statement as the outbox hands it to a client. */
export function sql(text: string): PgQuery {
  return { text, values: [], rowMode: 'array', types: { getTypeParser: () => (value) => value } }
}
