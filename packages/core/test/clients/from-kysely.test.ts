import { CamelCasePlugin, Kysely, PostgresDialect, sql, type Transaction } from 'kysely'
import { fromKysely } from '../../src/clients/from-kysely.ts'
import { fromPg } from '../../src/clients/from-pg.ts'
import { clientPromises } from './client-promises.ts'
import { patientPool } from './library.ts'

interface Tables {
  orders: { id: number }
}
const inside = (tx: unknown): Transaction<Tables> => tx as Transaction<Tables>

clientPromises('Kysely', { sessions: 'lent' }, (url, max) => {
  const pool = patientPool(url, max)
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }), plugins: [new CamelCasePlugin()] })
  return Promise.resolve({
    client: fromKysely(db, fromPg(pool)),
    alone: fromKysely(db),
    db,
    begin: (work) => db.transaction().execute((trx) => work(trx)),
    insertOrder: (tx, id) => inside(tx).insertInto('orders').values({ id }).execute(),
    run: (tx, text) => sql.raw(text).execute(inside(tx)),
    outside: { db: ['NOT_A_TRANSACTION', db] },
    close: () => db.destroy(),
  })
})
