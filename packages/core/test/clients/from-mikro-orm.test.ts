import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EntitySchema, MikroORM, type SqlEntityManager } from '@mikro-orm/postgresql'
import { fromMikroOrm } from '../../src/clients/from-mikro-orm.ts'
import { clientPromises } from './client-promises.ts'
import { event, type Library, openShop, type Shop } from './library.ts'

const orders = new EntitySchema<{ id: number }>({
  name: 'order',
  tableName: 'orders',
  properties: { id: { type: 'number', primary: true } },
})
const inside = (tx: unknown): SqlEntityManager => tx as SqlEntityManager

/** A pool of Knex reports each connection that it finds ended. */
const quiet = { log: { warn: () => undefined } }

async function open(url: string, max: number): Promise<Library> {
  const orm = await MikroORM.init({ clientUrl: url, entities: [orders], pool: { min: 0, max }, driverOptions: quiet })
  const em = orm.em.fork()
  return {
    client: fromMikroOrm(orm.em),
    db: em,
    begin: (work) => em.transactional((inner) => work(inner)),
    insertOrder: (tx, id) => inside(tx).insert(orders, { id }),
    run: (tx, text) => inside(tx).execute(text),
    outside: { 'the entity manager': ['NOT_IN_TRANSACTION', em], 'the global one': ['NOT_IN_TRANSACTION', orm.em] },
    close: () => orm.close(),
  }
}

clientPromises(
  'MikroORM',
  { sessions: 'own', savepoints: (tx, work) => inside(tx).transactional((inner) => work(inner)) },
  open,
)

describe('MikroORM: a unit of work', () => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(open)
  })
  afterAll(() => shop[Symbol.asyncDispose]())

  it('that is flushed at the end commits with the event, and one that cannot be takes it back', async () => {
    const place = async (tx: unknown): Promise<void> => {
      inside(tx).create(orders, { id: 1 }, { persist: true })
      await shop.outbox.enqueue(tx, event)
    }
    await shop.library.begin(place)
    await expect(shop.outbox.transaction((shop.library.db as SqlEntityManager).fork(), place)).rejects.toThrow('unique')
    expect(await shop.take()).toEqual({ orders: 1, events: 1 })
  })

  it('begun by hand is a transaction as well, until it ends', async () => {
    const em = (shop.library.db as SqlEntityManager).fork()
    await em.begin()
    await shop.outbox.enqueue(em, event)
    await em.commit()
    await expect(shop.outbox.enqueue(em, event)).rejects.toMatchObject({ code: 'NOT_IN_TRANSACTION' })
    expect(await shop.take()).toMatchObject({ events: 1 })
  })
})
