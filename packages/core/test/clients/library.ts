import { freshDatabase } from '@inorder/harness'
import pg from 'pg'
import { fromPg } from '../../src/clients/from-pg.ts'
import type { SqlClient } from '../../src/contract/sql-client.ts'
import { createOutbox, type Outbox } from '../../src/outbox.ts'
import type { EventInput } from '../../src/write/validate-event.ts'

/** A database library, opened, as the promises use it. What it calls a transaction is unknown to them. */
export interface Library {
  readonly client: SqlClient<unknown, unknown>
  /** The same without the other client that lends it sessions, where it needs one. */
  readonly alone?: SqlClient<unknown, unknown>
  /** The first argument of `outbox.transaction`. */
  readonly db: unknown
  /** Opens a transaction as an application does that has never heard of an outbox. */
  begin(work: (tx: unknown) => Promise<void>): Promise<unknown>
  /** Writes a business row the way the library likes it best. */
  insertOrder(tx: unknown, id: number): Promise<unknown>
  run(tx: unknown, sql: string): Promise<unknown>
  /** What `enqueue` must refuse, with the code. */
  readonly outside: Record<string, readonly [code: string, handle: unknown]>
  close(): Promise<void>
}

/** What a library can do, known before it is opened. */
export interface Features {
  /** Opens a savepoint in a transaction and gives the handle for it. Absent where the library has none. */
  readonly savepoints?: (tx: unknown, work: (tx: unknown) => Promise<void>) => Promise<unknown>
  /** Whether it lends sessions of its own, or another client must. */
  readonly sessions: 'own' | 'lent'
}

/** Opens a library on a database, with a pool of at most `max` connections. */
export type OpenLibrary = (url: string, max: number) => Promise<Library>

/** An application with a table `orders` beside its outbox, written with one library and looked at with another. */
export interface Shop extends AsyncDisposable {
  readonly url: string
  readonly library: Library
  readonly outbox: Outbox<unknown, unknown>
  /** Looks from outside. */
  readonly admin: pg.Pool
  /** How many orders and events there are, and afterwards none. */
  take(): Promise<{ orders: number; events: number }>
}

export const event: EventInput = { topic: 'orders', key: 'a', payload: 1 }

export async function openShop(open: OpenLibrary, max = 3): Promise<Shop> {
  const url = await freshDatabase()
  const admin = new pg.Pool({ connectionString: url, max: 4 })
  const own = createOutbox({ client: fromPg(admin) })
  await own.migrate()
  await own.close()
  await admin.query('create table orders (id bigint primary key)')
  const library = await open(url, max)
  const outbox = createOutbox({ client: library.client })
  return {
    url,
    library,
    outbox,
    admin,
    async take() {
      const { rows } = await admin.query<{ orders: number; events: number }>(
        'select (select count(*)::int from orders) orders, (select count(*)::int from outbox.events) events',
      )
      await admin.query('truncate orders, outbox.events')
      return rows[0] ?? { orders: -1, events: -1 }
    },
    async [Symbol.asyncDispose]() {
      await outbox.close()
      await library.close()
      await admin.end()
    },
  }
}

/** A pool whose connections may break while a library has them: without a listener that ends the process. */
export function patientPool(url: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max })
  pool.on('error', () => undefined)
  pool.on('connect', (client) => {
    client.on('error', () => undefined)
  })
  return pool
}
