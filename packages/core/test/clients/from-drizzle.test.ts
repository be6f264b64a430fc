import { sql } from 'drizzle-orm'
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres'
import { bigint, pgTable } from 'drizzle-orm/pg-core'
import { drizzle as drizzleJs, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { fromDrizzle } from '../../src/clients/from-drizzle.ts'
import { fromPostgresJs } from '../../src/clients/from-postgres-js.ts'
import { clientPromises } from './client-promises.ts'
import { type Library, patientPool } from './library.ts'

const orders = pgTable('orders', { id: bigint({ mode: 'number' }).primaryKey() })

type Db = NodePgDatabase | PostgresJsDatabase
const inside = (tx: unknown): NodePgDatabase => tx as NodePgDatabase
const savepoints = (tx: unknown, work: (tx: unknown) => Promise<void>): Promise<void> =>
  inside(tx).transaction((inner) => work(inner))

function usual(db: Db): Pick<Library, 'db' | 'begin' | 'insertOrder' | 'run' | 'outside'> {
  return {
    db,
    begin: (work) => db.transaction((tx) => work(tx)),
    insertOrder: (tx, id) => inside(tx).insert(orders).values({ id }),
    run: (tx, text) => inside(tx).execute(sql.raw(text)),
    outside: { db: ['NOT_A_TRANSACTION', db] },
  }
}

clientPromises('Drizzle on pg', { sessions: 'own', savepoints }, (url, max) => {
  const pool = patientPool(url, max)
  const db = drizzle(pool)
  return Promise.resolve({ ...usual(db), client: fromDrizzle(db), close: () => pool.end() })
})

clientPromises('Drizzle on postgres.js', { sessions: 'lent', savepoints }, (url, max) => {
  const client = postgres(url, { max, onnotice: () => undefined })
  const db = drizzleJs(client)
  return Promise.resolve({
    ...usual(db),
    client: fromDrizzle(db, fromPostgresJs(client, postgres)),
    alone: fromDrizzle(db),
    close: () => client.end({ timeout: 1 }),
  })
})
