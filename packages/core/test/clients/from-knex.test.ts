import knexFactory, { type Knex } from 'knex'
import { describe, expect, it } from 'vitest'
import { fromKnex } from '../../src/clients/from-knex.ts'
import { clientPromises } from './client-promises.ts'
import { event, type Library, openShop } from './library.ts'

const inside = (tx: unknown): Knex.Transaction => tx as Knex.Transaction

function open(url: string, max: number, postProcessResponse?: (result: unknown) => unknown): Promise<Library> {
  const knex = knexFactory({
    client: 'pg',
    connection: url,
    pool: { min: 0, max },
    // It reports each connection that it finds ended.
    log: { warn: () => undefined },
    ...(postProcessResponse === undefined ? {} : { postProcessResponse }),
  })
  return Promise.resolve({
    client: fromKnex(knex),
    db: knex,
    begin: (work) => knex.transaction((trx) => work(trx)),
    insertOrder: (tx, id) => inside(tx)('orders').insert({ id }),
    run: (tx, text) => inside(tx).raw(text),
    outside: { knex: ['NOT_A_TRANSACTION', knex], 'a query builder': ['NOT_A_TRANSACTION', knex('orders')] },
    close: () => knex.destroy(),
  })
}

/** Renames columns as the usual helper does, which takes any row for an object. */
function camelCased(result: unknown): unknown {
  const { rows } = result as { rows?: object[] }
  return rows === undefined ? result : { ...(result as object), rows: rows.map((row) => ({ ...row })) }
}

clientPromises(
  'Knex',
  { sessions: 'own', savepoints: (tx, work) => inside(tx).transaction((inner) => work(inner)) },
  open,
)

describe('Knex: a transaction that is ended by hand', () => {
  it('is a handle until then', async () => {
    await using shop = await openShop(open)
    const trx = await (shop.library.db as Knex).transaction()
    await shop.outbox.enqueue(trx, event)
    await trx.commit()
    await expect(shop.outbox.enqueue(trx, event)).rejects.toMatchObject({ code: 'NOT_IN_TRANSACTION' })
    expect(await shop.take()).toMatchObject({ events: 1 })
  })

  it('in outbox.transaction is rolled back without a complaint', async () => {
    await using shop = await openShop(open)
    await shop.outbox.transaction(shop.library.db, async (tx) => {
      await shop.outbox.enqueue(tx, event)
      await inside(tx).rollback()
    })
    expect(await shop.take()).toMatchObject({ events: 0 })
  })

  it('reads rows whatever an application makes of them', async () => {
    await using shop = await openShop((url, max) => open(url, max, (result) => camelCased(result)))
    const enqueued = await shop.outbox.transaction(shop.library.db, (tx) => shop.outbox.enqueue(tx, [event, event]))
    expect(enqueued).toEqual([
      { id: expect.stringMatching(/^\d+$/) as string, eventId: expect.any(String) as string, duplicate: false },
      { id: expect.stringMatching(/^\d+$/) as string, eventId: expect.any(String) as string, duplicate: false },
    ])
  })
})
