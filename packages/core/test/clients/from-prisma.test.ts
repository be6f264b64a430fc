import { PrismaPg } from '@prisma/adapter-pg'
import type pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { fromPg } from '../../src/clients/from-pg.ts'
import { fromPrisma } from '../../src/clients/from-prisma.ts'
import { clientPromises } from './client-promises.ts'
import { generatePrisma, type PrismaClient, type Transaction } from './generated-prisma.ts'
import { event, type Library, openShop, patientPool, type Shop } from './library.ts'

const prisma = await generatePrisma()
afterAll(() => prisma[Symbol.asyncDispose]())

const inside = (tx: unknown): Transaction => tx as Transaction

function libraryOf(db: PrismaClient, pool: pg.Pool): Library {
  return {
    client: fromPrisma(db, fromPg(pool)),
    alone: fromPrisma(db),
    db,
    begin: (work) => db.$transaction((tx) => work(tx)),
    insertOrder: async (tx, id) => inside(tx).orders.create({ data: { id: BigInt(id) } }),
    run: async (tx, text) => inside(tx).$queryRawUnsafe(text),
    outside: {
      prisma: ['NOT_A_TRANSACTION', db],
      'an extended prisma': ['NOT_A_TRANSACTION', db.$extends({ client: { hello: () => 1 } })],
    },
    async close() {
      await db.$disconnect()
      await pool.end()
    },
  }
}

clientPromises(
  'Prisma',
  { sessions: 'lent', savepoints: (tx, work) => inside(tx).$transaction((inner) => work(inner)) },
  (url, max) => {
    const db = prisma.open({ adapter: new PrismaPg({ connectionString: url, max }) })
    return Promise.resolve(libraryOf(db, patientPool(url, max)))
  },
)

describe('Prisma: a transaction that has expired', () => {
  const timeout = 100
  const unhandled: unknown[] = []
  const note = (reason: unknown): number => unhandled.push(reason)
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop((url, max) => {
      const db = prisma.open({ adapter: new PrismaPg({ connectionString: url, max }), transactionOptions: { timeout } })
      return Promise.resolve(libraryOf(db, patientPool(url, max)))
    })
  })
  afterAll(() => shop[Symbol.asyncDispose]())
  beforeEach(() => {
    unhandled.length = 0
    process.on('unhandledRejection', note)
  })
  afterEach(() => process.off('unhandledRejection', note))

  /** Resolves when the server has rolled back what was open. */
  async function expiry(): Promise<void> {
    await expect
      .poll(
        async () =>
          (
            await shop.admin.query(
              "select from pg_stat_activity where datname = current_database() and state = 'idle in transaction'",
            )
          ).rowCount,
        { timeout: 20_000 },
      )
      .toBe(0)
  }

  const ways: [string, (work: (tx: unknown) => Promise<void>) => Promise<unknown>][] = [
    ['prisma.$transaction', (work) => shop.library.begin(work)],
    ['outbox.transaction', (work) => shop.outbox.transaction(shop.library.db, work)],
  ]

  it.each(ways)('refuses the event, which is an error that reaches the caller: %s', async (_, begin) => {
    const work = begin(async (tx) => {
      await shop.library.insertOrder(tx, 55)
      await expiry()
      await expect(shop.outbox.enqueue(tx, event)).rejects.toMatchObject({
        code: 'NOT_IN_TRANSACTION',
        cause: expect.objectContaining({ code: 'P2028' }) as unknown,
      })
    })
    await expect(work).rejects.toMatchObject({ code: 'P2028' })
    expect(await shop.take()).toEqual({ orders: 0, events: 0 })
  })

  it.each(ways)(
    'says so once, to whoever runs the transaction, when nobody waits for the event: %s',
    async (_, begin) => {
      let enqueued: Promise<unknown> | undefined
      const work = begin(async (tx) => {
        await shop.library.insertOrder(tx, 55)
        await expiry()
        enqueued = shop.outbox.enqueue(tx, event)
      })
      await expect(work).rejects.toThrow()
      await new Promise((resolve) => setImmediate(resolve))
      expect(unhandled).toEqual([])
      await expect(enqueued).rejects.toMatchObject({ code: 'NOT_IN_TRANSACTION' })
      expect(await shop.take()).toEqual({ orders: 0, events: 0 })
    },
  )
})
