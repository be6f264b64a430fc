import 'reflect-metadata'
import { DataSource, type EntityManager } from 'typeorm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fromTypeOrm } from '../../src/clients/from-typeorm.ts'
import { clientPromises } from './client-promises.ts'
import { event, type Library, openShop, type Shop } from './library.ts'

const inside = (tx: unknown): EntityManager => tx as EntityManager

async function open(url: string, max: number): Promise<Library & { readonly db: DataSource }> {
  const extra = { max }
  const db = new DataSource({ type: 'postgres', url, extra, poolErrorHandler: () => undefined })
  await db.initialize()
  const runner = db.createQueryRunner()
  return {
    client: fromTypeOrm(db),
    db,
    begin: (work) => db.transaction((manager) => work(manager)),
    insertOrder: (tx, id) => inside(tx).query('insert into orders values ($1)', [id]),
    run: (tx, text) => inside(tx).query(text),
    outside: {
      'the data source': ['NOT_A_TRANSACTION', db],
      'its entity manager': ['NOT_A_TRANSACTION', db.manager],
      'a query runner': ['NOT_IN_TRANSACTION', runner],
      'the entity manager of a query runner': ['NOT_IN_TRANSACTION', runner.manager],
    },
    async close() {
      await runner.release()
      await db.destroy()
    },
  }
}

clientPromises(
  'TypeORM',
  { sessions: 'own', savepoints: (tx, work) => inside(tx).transaction((inner) => work(inner)) },
  open,
)

describe('TypeORM: a query runner with a transaction of its own', () => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(open)
  })
  afterAll(() => shop[Symbol.asyncDispose]())

  it('is a handle as good as its entity manager, until it ends the transaction or is released', async () => {
    const runner = (shop.library.db as DataSource).createQueryRunner()
    await runner.startTransaction()
    await shop.outbox.enqueue(runner, event)
    await shop.outbox.enqueue(runner.manager, event)
    await runner.commitTransaction()
    await expect(shop.outbox.enqueue(runner, event)).rejects.toMatchObject({ code: 'NOT_IN_TRANSACTION' })
    await runner.startTransaction()
    await shop.outbox.enqueue(runner, event)
    await runner.rollbackTransaction()
    await runner.release()
    await expect(shop.outbox.enqueue(runner, event)).rejects.toMatchObject({ code: 'NOT_IN_TRANSACTION' })
    expect(await shop.take()).toMatchObject({ events: 2 })
  })

  it('is named when there are no sessions yet, because nobody has initialised the data source', async () => {
    const client = fromTypeOrm(new DataSource({ type: 'postgres', url: shop.url }))
    await expect(client.connect()).rejects.toMatchObject({
      code: 'OPTIONS_INVALID',
      message: expect.stringContaining('dataSource.initialize()') as string,
    })
  })
})
