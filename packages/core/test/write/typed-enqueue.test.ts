import { freshDatabase } from '@inorder/harness'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { fromPg, type PgClient } from '../../src/clients/from-pg.ts'
import { defineEvents } from '../../src/contract/event-registry.ts'
import type { OutboxEvent } from '../../src/contract/event.ts'
import { createOutbox } from '../../src/outbox.ts'
import type { Enqueued } from '../../src/write/enqueue.ts'
import { gate } from '../support/gate.ts'
import { shop } from '../support/shop-events.ts'
import { testPublisher } from '../support/test-publisher.ts'

const pool = new pg.Pool({ connectionString: await freshDatabase(), max: 12 })
const outbox = createOutbox({ client: fromPg(pool), events: shop })
beforeAll(() => outbox.migrate())
afterAll(async () => {
  await outbox.close()
  await pool.end()
})

async function rows(): Promise<unknown[]> {
  const { rows: found } = await pool.query<object>('select topic, type, key from outbox.events order by id')
  return found
}

describe('with a registry', () => {
  it('what is enqueued by its type is what a consumer decodes, with the key nobody had to name', async () => {
    const received: OutboxEvent[] = []
    const publisher = testPublisher((run) => {
      received.push(...run)
      return { acknowledged: run.length }
    })
    await outbox.transaction(pool, async (tx) => {
      await outbox.enqueue(tx, { type: 'order.placed', payload: { id: 'o-1', note: ' hi ' }, headers: { a: 'b' } })
      await outbox.enqueue(tx, [
        { type: 'order.paid', payload: { order: 'o-1', by: 'card' } },
        { topic: 'profiles', key: 'u-1', payload: null },
      ])
    })
    await outbox.relay({ publisher }).drain()
    expect(received.map(({ topic, type, key }) => [topic, type, key]).toSorted()).toEqual([
      ['orders', 'order.paid', 'o-1'],
      ['orders', 'order.placed', 'o-1'],
      ['profiles', null, 'u-1'],
    ])
    const decoded = await Promise.all(received.map((event) => shop.decode(event)))
    const placed = decoded.find((event) => event.name === 'order.placed')
    expect(placed).toMatchObject({ payload: { id: 'o-1', total: 0, note: 'hi' }, headers: { a: 'b' } })
    expect(decoded.find((event) => event.name === 'order.paid')?.payload).toEqual({ order: 'o-1', by: 'card' })
    expect(decoded.find((event) => event.name === 'profiles')?.payload).toBeNull()
  })

  it('a bad payload is refused before any SQL, so that the transaction is still usable', async () => {
    const before = await rows()
    await outbox.transaction(pool, async (tx) => {
      const statements: string[] = []
      const watched: PgClient = {
        query(config) {
          statements.push(config.text)
          return tx.query(config) as never
        },
      }
      const bad = { type: 'order.placed', payload: { id: '' } } as const
      await expect(outbox.enqueue(watched, [{ ...bad, payload: { id: 'fine' } }, bad])).rejects.toMatchObject({
        code: 'EVENT_INVALID',
        problems: [{ path: '/payload/id', index: 1 }],
      })
      expect(statements).toEqual([])
      await tx.query('select 1')
    })
    expect(await rows()).toEqual(before)
  })

  it('a transaction that ends while a schema thinks gets no event, and none is written outside it', async () => {
    const { opened, open } = gate()
    const slow = z.string().refine(async () => {
      await opened
      return true
    })
    const slowly = createOutbox({
      client: fromPg(pool),
      events: defineEvents({ slow: { schema: slow, key: () => null } }),
    })
    const client = await pool.connect()
    await client.query('begin')
    const enqueued = slowly.enqueue(client, { type: 'slow', payload: 'x' })
    await client.query('commit')
    open()
    await expect(enqueued).rejects.toMatchObject({ code: 'NOT_IN_TRANSACTION' })
    client.release()
    await slowly.close()
    expect(await rows()).not.toContainEqual(expect.objectContaining({ topic: 'slow' }))
  })

  it('events of plain SQL are decoded by their topic', async () => {
    await pool.query(`select outbox.enqueue('stock', payload => '{"item": "pen", "left": 2}')`)
    const { rows: events } = await pool.query<{ topic: string; type: null; payload: Buffer; content_type: string }>(
      `select topic, type, payload, content_type from outbox.events where topic = 'stock'`,
    )
    const [event] = events
    if (event === undefined) throw new Error('nothing was enqueued')
    expect(await shop.decode({ ...event, contentType: event.content_type })).toMatchObject({
      name: 'stock',
      payload: { item: 'pen', left: 2 },
    })
  })
})

describe('the types of enqueue', () => {
  type Tx = PgClient
  // Never called: only the compiler looks at it.
  const typed = (tx: Tx): Promise<unknown>[] => [
    outbox.enqueue(tx, { type: 'order.placed', payload: { id: 'a' } }),
    outbox.enqueue(tx, { type: 'order.placed', topic: 'orders', payload: { id: 'a', total: 1 }, delayMs: 5 }),
    outbox.enqueue(tx, { topic: 'profiles', payload: null, key: 'u' }),
    outbox.enqueue(tx, { type: 'profiles', payload: { user: 'u' } }),
    // @ts-expect-error not registered
    outbox.enqueue(tx, { type: 'order.payd', payload: { id: 'a' } }),
    // @ts-expect-error the payload of another event
    outbox.enqueue(tx, { type: 'order.paid', payload: { id: 'a' } }),
    // @ts-expect-error a value that the schema does not take
    outbox.enqueue(tx, { type: 'order.paid', payload: { order: 'a', by: 'gold' } }),
    // @ts-expect-error the key comes from the registry
    outbox.enqueue(tx, { type: 'order.placed', key: 'a', payload: { id: 'a' } }),
    // @ts-expect-error this one has no tombstones
    outbox.enqueue(tx, { type: 'order.placed', key: 'a', payload: null }),
    // @ts-expect-error a tombstone names its key
    outbox.enqueue(tx, { type: 'profiles', payload: null }),
    // @ts-expect-error no payload at all
    outbox.enqueue(tx, { type: 'order.placed' }),
    // @ts-expect-error one bad event in a list
    outbox.enqueue(tx, [
      { type: 'order.placed', payload: { id: 'a' } },
      { type: 'stock', payload: {} },
    ]),
    // @ts-expect-error no such option
    outbox.enqueue(tx, { type: 'order.placed', payload: { id: 'a' } }, { onDuplicate: 'replace' }),
  ]

  it('are those of the registry, and without one those of any event', () => {
    expectTypeOf(typed).returns.toEqualTypeOf<Promise<unknown>[]>()
    const untyped = createOutbox({ client: fromPg(pool) })
    const any = (tx: Tx) => untyped.enqueue(tx, { topic: 'x', key: 'y', payload: new Map() })
    expectTypeOf(any).returns.toEqualTypeOf<Promise<Enqueued>>()
    // @ts-expect-error without a registry the key is named by the call
    const keyless = (tx: Tx) => untyped.enqueue(tx, { topic: 'x', payload: 1 })
    expectTypeOf(keyless).toBeFunction()
  })
})
