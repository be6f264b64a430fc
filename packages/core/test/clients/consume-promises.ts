import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createInbox, type Inbox } from '../../src/consume/inbox.ts'
import { sqlState } from '../../src/contract/sql-state.ts'
import { createOutbox } from '../../src/outbox.ts'
import { gate } from '../support/gate.ts'
import { event, type OpenLibrary, openShop, type Shop } from './library.ts'

/** What waits for another transaction: an inbox for a copy of its event, a serialized writer for its key. */
export function consumePromises(open: OpenLibrary): void {
  let shop: Shop
  let inbox: Inbox<unknown>
  beforeAll(async () => {
    shop = await openShop(open)
    inbox = createInbox({ client: shop.library.client })
  })
  afterAll(() => shop[Symbol.asyncDispose]())

  const orders = async (): Promise<number> => (await shop.take()).orders

  it('an event has its effect once, and is a duplicate from then on', async () => {
    const claim = { consumer: 'billing', eventId: randomUUID() }
    const process = (): Promise<unknown> =>
      shop.library.begin(async (tx) => {
        answers.push(await inbox.processOnce(tx, claim, () => shop.library.insertOrder(tx, 1).then(() => 7)))
      })
    const answers: unknown[] = []
    for (let copy = 0; copy < 3; copy++) await process()
    expect(answers).toEqual([{ duplicate: false, result: 7 }, { duplicate: true }, { duplicate: true }])
    expect(await orders()).toBe(1)
  })

  it('an effect that throws leaves no note, in a transaction that is rolled back or commits all the same', async () => {
    const claim = { consumer: 'billing', eventId: randomUUID() }
    const fault = new Error('no stock')
    const thrown = (tx: unknown): Promise<unknown> => inbox.processOnce(tx, claim, () => Promise.reject(fault))
    await expect(
      shop.library.begin(async (tx) => {
        await thrown(tx)
      }),
    ).rejects.toBe(fault)
    await shop.library.begin(async (tx) => {
      await expect(thrown(tx)).rejects.toBe(fault)
    })
    await shop.library.begin(async (tx) => {
      expect(await inbox.processOnce(tx, claim, () => 1)).toEqual({ duplicate: false, result: 1 })
    })
  })

  it('a copy under REPEATABLE READ fails with 40001 and the advice to try again, which reports a duplicate', async () => {
    const claim = { consumer: 'billing', eventId: randomUUID() }
    await expect(
      shop.library.begin(async (tx) => {
        await shop.library.run(tx, 'set transaction isolation level repeatable read')
        await shop.library.run(tx, 'select 1')
        await shop.admin.query('insert into outbox.processed_events (consumer, event_id) values ($1, $2)', [
          claim.consumer,
          claim.eventId,
        ])
        await inbox.processOnce(tx, claim, () => expect.fail('the effect ran'))
      }),
    ).rejects.toSatisfy(
      (error) => sqlState(error) === '40001' && (error as Error).message.includes('it is reported as a duplicate'),
    )
    await shop.library.begin(async (tx) => {
      expect(await inbox.processOnce(tx, claim, () => expect.fail('the effect ran'))).toEqual({ duplicate: true })
    })
  })

  it('what is no transaction is refused, and nothing is noted', async () => {
    const claim = { consumer: 'billing', eventId: randomUUID() }
    for (const [code, handle] of Object.values(shop.library.outside))
      await expect(inbox.processOnce(handle, claim, () => expect.fail('the effect ran'))).rejects.toMatchObject({
        code,
      })
    const { rowCount } = await shop.admin.query('select 1 from outbox.processed_events where event_id = $1', [
      claim.eventId,
    ])
    expect(rowCount).toBe(0)
  })

  it('with serialized writes the second writer of a key waits for the first', async () => {
    const serialized = createOutbox({ client: shop.library.client, serializeWrites: true })
    const [written, done] = [gate(), gate()]
    const ids: string[] = []
    const first = shop.library.begin(async (tx) => {
      ids.push((await serialized.enqueue(tx, event)).id)
      written.open()
      await done.opened
    })
    await written.opened
    const second = shop.library.begin(async (tx) => {
      ids.push((await serialized.enqueue(tx, [event, { ...event, key: 'b' }]))[0]?.id ?? '')
      const { rows } = await shop.admin.query<{ id: string }>(`select min(id) id from outbox.events`)
      expect(rows).toEqual([{ id: ids[0] }])
    })
    const waiting = async (): Promise<number | null> =>
      (
        await shop.admin.query(
          `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and wait_event = 'advisory'`,
        )
      ).rowCount
    await expect.poll(waiting, { timeout: 20_000 }).toBe(1).finally(done.open)
    await Promise.all([first, second])
    expect(ids.map(Number)).toEqual(ids.map(Number).toSorted((a, b) => a - b))
    expect(await shop.take()).toMatchObject({ events: 3 })
    await serialized.close()
  })
}
