import { afterAll, beforeAll, expect, it } from 'vitest'
import { gate } from '../support/gate.ts'
import { event, type Features, type OpenLibrary, openShop, type Shop } from './library.ts'

const reason = new Error('no stock')

/** Whether an event exists follows its transaction, whatever the application does or forgets. */
export function transactionPromises(open: OpenLibrary, { savepoints }: Features): void {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(open)
  })
  afterAll(() => shop[Symbol.asyncDispose]())

  const enqueue = (tx: unknown): Promise<unknown> => shop.outbox.enqueue(tx, event)
  const both = async (tx: unknown): Promise<void> => {
    await shop.library.insertOrder(tx, 1)
    await enqueue(tx)
  }
  const ways: [string, (work: (tx: unknown) => Promise<void>) => Promise<unknown>][] = [
    ["the library's own transaction", (work) => shop.library.begin(work)],
    ['outbox.transaction', (work) => shop.outbox.transaction(shop.library.db, work)],
  ]

  it.each(ways)('commit together in %s, and nobody sees them before', async (_, begin) => {
    await begin(async (tx) => {
      await both(tx)
      const { rows } = await shop.admin.query('select from orders union all select from outbox.events')
      expect(rows).toEqual([])
    })
    expect(await shop.take()).toEqual({ orders: 1, events: 1 })
  })

  it.each(ways)('roll back together in %s, and the error arrives as it was', async (_, begin) => {
    await expect(
      begin(async (tx) => {
        await both(tx)
        throw reason
      }),
    ).rejects.toBe(reason)
    expect(await shop.take()).toEqual({ orders: 0, events: 0 })
  })

  it('several calls at once in one transaction are all written', async () => {
    const keys = Array.from({ length: 20 }, (_, index) => String(index))
    await shop.library.begin(async (tx) => {
      await Promise.all(keys.map((key) => shop.outbox.enqueue(tx, { ...event, key })))
    })
    expect(await shop.take()).toMatchObject({ events: 20 })
  })

  it('the only connection of a pool is enough', async () => {
    await using narrow = await openShop(open, 1)
    for (let round = 0; round < 3; round++) {
      await narrow.outbox.transaction(narrow.library.db, (tx) => narrow.outbox.enqueue(tx, event))
      await narrow.library.begin(async (tx) => {
        await narrow.outbox.enqueue(tx, event)
      })
    }
    expect(await narrow.take()).toMatchObject({ events: 6 })
  })

  it('outbox.transaction returns what its function returns', async () => {
    expect(await shop.outbox.transaction(shop.library.db, () => Promise.resolve(7))).toBe(7)
  })

  it('two transactions at once do not mix', async () => {
    const [first, second] = [gate(), gate()]
    const kept = shop.library.begin(async (tx) => {
      await both(tx)
      first.open()
      await second.opened
      await enqueue(tx)
    })
    await first.opened
    await expect(
      shop.library.begin(async (tx) => {
        await shop.library.insertOrder(tx, 2)
        await enqueue(tx)
        throw reason
      }),
    ).rejects.toBe(reason)
    second.open()
    await kept
    expect(await shop.take()).toEqual({ orders: 1, events: 2 })
  })

  if (savepoints !== undefined) {
    it('a savepoint that is rolled back takes its event with it, and only that', async () => {
      const send = (tx: unknown, key: string): Promise<unknown> => shop.outbox.enqueue(tx, { ...event, key })
      await shop.library.begin(async (tx) => {
        await send(tx, 'outer')
        const inner = savepoints(tx, async (handle) => {
          await send(handle, 'inner')
          throw reason
        })
        await expect(inner).rejects.toBe(reason)
        await savepoints(tx, async (handle) => {
          await send(handle, 'kept')
        })
        await send(tx, 'after')
      })
      const { rows } = await shop.admin.query<{ key: string }>('select key from outbox.events order by id')
      expect(rows.map(({ key }) => key)).toEqual(['outer', 'kept', 'after'])
      await shop.take()
    })

    it('outbox.transaction in a transaction of the caller is a savepoint of it', async () => {
      const work = shop.library.begin(async (tx) => {
        await shop.outbox.transaction(tx, both)
        await expect(shop.outbox.transaction(tx, () => Promise.reject(reason))).rejects.toBe(reason)
        await enqueue(tx)
        expect((await shop.admin.query('select from outbox.events')).rowCount).toBe(0)
        throw new Error('the outer one')
      })
      await expect(work).rejects.toThrow('the outer one')
      expect(await shop.take()).toEqual({ orders: 0, events: 0 })
    })
  }

  it('outbox.transaction reports no commit that was none, because a statement failed and nobody said so', async () => {
    await expect(
      shop.outbox.transaction(shop.library.db, async (tx) => {
        await both(tx)
        await shop.library.run(tx, 'select 1 / 0').catch(() => undefined)
      }),
    ).rejects.toMatchObject({
      code: 'NOT_IN_TRANSACTION',
      message: expect.stringContaining('nothing can be committed') as string,
    })
    expect(await shop.take()).toEqual({ orders: 0, events: 0 })
  })

  it('connections go back to the pool, however a transaction ends', async () => {
    const wrong = { ...event, topic: '' }
    for (let round = 0; round < 4; round++) {
      await shop.outbox.transaction(shop.library.db, enqueue)
      await expect(shop.library.begin(() => Promise.reject(reason))).rejects.toBe(reason)
      await expect(shop.outbox.transaction(shop.library.db, () => Promise.reject(reason))).rejects.toBe(reason)
      await expect(shop.outbox.transaction(shop.library.db, (tx) => shop.outbox.enqueue(tx, wrong))).rejects.toThrow()
      await expect(
        shop.outbox.transaction(shop.library.db, (tx) => shop.library.run(tx, 'select 1 / 0')),
      ).rejects.toThrow()
    }
    const { rows } = await shop.admin.query<{ state: string }>(
      "select state from pg_stat_activity where datname = current_database() and state like '%in transaction%'",
    )
    expect(rows).toEqual([])
    expect((await shop.take()).events).toBe(4)
  })

  it('an enqueue that nobody waits for is part of outbox.transaction', async () => {
    await shop.outbox.transaction(shop.library.db, (tx) => {
      void enqueue(tx)
      return Promise.resolve()
    })
    expect(await shop.take()).toMatchObject({ events: 1 })
    for (let round = 0; round < 10; round++) {
      const work = shop.outbox.transaction(shop.library.db, (tx) => {
        void enqueue(tx)
        throw reason
      })
      await expect(work).rejects.toBe(reason)
    }
    expect(await shop.take()).toMatchObject({ events: 0 })
  })

  it('one that fails and that nobody waits for makes outbox.transaction fail', async () => {
    const eventId = crypto.randomUUID()
    const work = shop.outbox.transaction(shop.library.db, async (tx) => {
      await shop.library.insertOrder(tx, 1)
      await shop.outbox.enqueue(tx, { ...event, eventId })
      void shop.outbox.enqueue(tx, { ...event, eventId, payload: 'another' })
    })
    await expect(work).rejects.toMatchObject({ code: 'EVENT_ID_CONFLICT' })
    expect(await shop.take()).toEqual({ orders: 0, events: 0 })
  })

  it("one that nobody waits for is never written outside the library's own transaction, nor lost without a word", async () => {
    for (let round = 0; round < 10; round++) {
      let enqueued: Promise<unknown> | undefined
      const work = shop.library.begin((tx) => {
        enqueued = enqueue(tx)
        enqueued.catch(() => undefined)
        throw reason
      })
      await expect(work).rejects.toBe(reason)
      await enqueued?.catch(() => undefined)
      expect(await shop.take()).toMatchObject({ events: 0 })

      await shop.library.begin((tx) => {
        enqueued = enqueue(tx)
        enqueued.catch(() => undefined)
        return Promise.resolve()
      })
      const written = await enqueued?.then(
        () => 1,
        () => 0,
      )
      expect(await shop.take()).toMatchObject({ events: written })
    }
  })

  it('a connection that breaks in the middle takes both with it, and the library goes on', async () => {
    const work = shop.outbox.transaction(shop.library.db, async (tx) => {
      await both(tx)
      await shop.admin.query(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'",
      )
      await expect(enqueue(tx)).rejects.toThrow()
      throw reason
    })
    await expect(work).rejects.toThrow()
    expect(await shop.take()).toEqual({ orders: 0, events: 0 })
    await shop.outbox.transaction(shop.library.db, both)
    expect(await shop.take()).toEqual({ orders: 1, events: 1 })
  })
}
