import { afterAll, beforeAll, expect, it } from 'vitest'
import { createOutbox } from '../../src/outbox.ts'
import { event, type OpenLibrary, openShop, type Shop } from './library.ts'

/** What is no open transaction is refused with what to do instead, and nothing is written. */
export function refusalPromises(open: OpenLibrary): void {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(open)
  })
  afterAll(() => shop[Symbol.asyncDispose]())

  it('is refused, naming the call that opens one', async () => {
    const nothing = { code: 'NOT_A_TRANSACTION', handles: [undefined, null, 'postgres://', 7, {}, Promise.resolve()] }
    const wrong: [string, unknown][] = nothing.handles.map((handle) => [nothing.code, handle])
    for (const [code, handle] of [...Object.values(shop.library.outside), ...wrong]) {
      await expect(shop.outbox.enqueue(handle, event)).rejects.toMatchObject({
        name: 'OutboxError',
        code,
        message: expect.stringMatching(/outbox\.transaction\(\w+, \(tx\) => \.\.\.\)/) as string,
      })
      await expect(shop.outbox.enqueue(handle, [])).rejects.toMatchObject({ code })
    }
    expect(await shop.take()).toEqual({ orders: 0, events: 0 })
  })

  it.each(["the library's own transaction", 'outbox.transaction'])('is refused after the end of %s', async (which) => {
    const begin = async (work: (tx: unknown) => Promise<void>): Promise<unknown> =>
      which === 'outbox.transaction' ? shop.outbox.transaction(shop.library.db, work) : shop.library.begin(work)
    for (const end of ['commit', 'rollback']) {
      let kept: unknown
      await begin((tx) => {
        kept = tx
        return end === 'commit' ? Promise.resolve() : Promise.reject(new Error('no stock'))
      }).catch(() => undefined)
      await expect(shop.outbox.enqueue(kept, event)).rejects.toMatchObject({ code: 'NOT_IN_TRANSACTION' })
    }
    expect(await shop.take()).toEqual({ orders: 0, events: 0 })
  })

  it('is refused when the transaction has already failed', async () => {
    const work = shop.library.begin(async (tx) => {
      await shop.library.run(tx, 'select 1 / 0').catch(() => undefined)
      await expect(shop.outbox.enqueue(tx, event)).rejects.toMatchObject({
        code: 'NOT_IN_TRANSACTION',
        message: expect.stringContaining('already failed') as string,
      })
    })
    // Some libraries report the commit of a failed transaction, some do not.
    await work.catch(() => undefined)
    expect(await shop.take()).toEqual({ orders: 0, events: 0 })
  })

  it('a bad event leaves the transaction usable', async () => {
    await shop.library.begin(async (tx) => {
      await expect(shop.outbox.enqueue(tx, { ...event, topic: '' })).rejects.toMatchObject({ code: 'EVENT_INVALID' })
      await shop.library.insertOrder(tx, 1)
      await shop.outbox.enqueue(tx, event)
    })
    expect(await shop.take()).toEqual({ orders: 1, events: 1 })
  })

  it('a missing schema is named with its remedy', async () => {
    const elsewhere = createOutbox({ client: shop.library.client, schema: 'nowhere' })
    const work = elsewhere.transaction(shop.library.db, (tx) => elsewhere.enqueue(tx, event))
    await expect(work).rejects.toMatchObject({
      code: 'SCHEMA_MISSING',
      message: expect.stringContaining('outbox.migrate()') as string,
    })
    await elsewhere.close()
  })
}
