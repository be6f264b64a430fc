import { CamelCasePlugin, Kysely, PostgresDialect, sql, type Transaction } from 'kysely'
import { describe, expect, it } from 'vitest'
import { fromKysely } from '../../src/clients/from-kysely.ts'
import { fromPg } from '../../src/clients/from-pg.ts'
import { clientPromises } from './client-promises.ts'
import { event, type Library, openShop, patientPool } from './library.ts'

interface Tables {
  orders: { id: number }
}
const inside = (tx: unknown): Transaction<Tables> => tx as Transaction<Tables>

function open(url: string, max: number): Promise<Library> {
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
}

clientPromises('Kysely', { sessions: 'lent' }, open)

describe('Kysely: a controlled transaction', () => {
  it('is a handle until it is committed, and takes savepoints along', async () => {
    await using shop = await openShop(open)
    const trx = await (shop.library.db as Kysely<Tables>).startTransaction().execute()
    await shop.outbox.enqueue(trx, event)
    const saved = await trx.savepoint('s').execute()
    await shop.outbox.enqueue(saved, event)
    await saved.rollbackToSavepoint('s').execute()
    await trx.commit().execute()
    await expect(shop.outbox.enqueue(trx, event)).rejects.toMatchObject({ code: 'NOT_IN_TRANSACTION' })
    expect(await shop.take()).toMatchObject({ events: 1 })
  })
})
