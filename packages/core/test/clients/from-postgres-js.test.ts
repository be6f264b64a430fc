import postgres from 'postgres'
import { fromPostgresJs } from '../../src/clients/from-postgres-js.ts'
import { clientPromises } from './client-promises.ts'

const inside = (tx: unknown): postgres.TransactionSql => tx as postgres.TransactionSql

clientPromises(
  'postgres.js',
  { sessions: 'lent', savepoints: (tx, work) => inside(tx).savepoint((inner) => work(inner)) },
  (url, max) => {
    const sql = postgres(url, { max, onnotice: () => undefined, transform: postgres.camel })
    return Promise.resolve({
      client: fromPostgresJs(sql, postgres),
      alone: fromPostgresJs(sql),
      db: sql,
      begin: (work) => sql.begin((tx) => work(tx)),
      insertOrder: (tx, id) => inside(tx)`insert into orders values (${id})`,
      run: (tx, text) => inside(tx).unsafe(text),
      outside: { sql: ['NOT_A_TRANSACTION', sql] },
      close: () => sql.end({ timeout: 1 }),
    })
  },
)
