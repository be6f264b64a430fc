import { OutboxError } from '@inorder/core'
import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { json, openScene } from './scene.ts'

const scene = await openScene()
// The smallest pool there is: whatever needs a second connection would wait for ever.
const narrow = new pg.Pool({ connectionString: scene.url, max: 1 })
afterAll(async () => {
  await narrow.end()
  await scene.close()
})

const visible = (): Promise<number> => scene.count(`select count(*) from outbox.events where status <> 'published'`)
const orderExists = (id: number): Promise<number> => scene.count('select count(*) from orders where id = $1', [id])

describe('an event exists if and only if its transaction committed', () => {
  it.each([
    ['commit', 1],
    ['rollback', 0],
  ])('%s, on the only connection of the pool', async (end, expected) => {
    const id = 100 + expected
    const client = await narrow.connect()
    await client.query('begin')
    await client.query('insert into orders values ($1)', [id])
    await scene.outbox.enqueue(client, { topic: 'orders', key: String(id), payload: { id } })
    expect(narrow.idleCount).toBe(0)
    expect(await visible()).toBe(0)
    expect(await scene.deliver()).toEqual([])
    await client.query(end)
    client.release()
    expect(await orderExists(id)).toBe(expected)
    expect((await scene.deliver()).map(json)).toEqual(expected === 1 ? [{ id }] : [])
    expect(await visible()).toBe(0)
  })

  it('a function that returns commits, one that throws rolls back, and its error arrives as it was', async () => {
    await scene.outbox.transaction(narrow, (tx) =>
      scene.outbox.enqueue(tx, { topic: 'orders', key: 'a', payload: 'kept' }),
    )
    const reason = new Error('no stock')
    await expect(
      scene.outbox.transaction(narrow, async (tx) => {
        await scene.outbox.enqueue(tx, { topic: 'orders', key: 'a', payload: 'gone' })
        throw reason
      }),
    ).rejects.toBe(reason)
    expect(narrow.idleCount).toBe(1)
    expect((await scene.deliver()).map(json)).toEqual(['kept'])
  })

  it('a connection that is lost takes its event with it', async () => {
    const client = await scene.pool.connect()
    client.on('error', () => undefined)
    await client.query('begin')
    await scene.outbox.enqueue(client, { topic: 'orders', key: 'a', payload: 'lost' })
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() pid')
    await scene.pool.query('select pg_terminate_backend($1, 5000)', [rows[0]?.pid])
    client.release(true)
    expect(await visible()).toBe(0)
    expect(await scene.deliver()).toEqual([])
  })

  it('the SQL function and plain SQL join the transaction they run in', async () => {
    const client = await scene.pool.connect()
    const both = async (end: string): Promise<void> => {
      await client.query('begin')
      await client.query(`select outbox.enqueue('orders', 'a', '"function"')`)
      await client.query(`insert into outbox.events (topic, key, payload) values ('orders', 'a', '"plain"')`)
      await client.query(end)
    }
    await both('rollback')
    expect(await scene.deliver()).toEqual([])
    await both('commit')
    client.release()
    expect((await scene.deliver()).map(json)).toEqual(['function', 'plain'])
  })
})

describe('enqueue without a transaction is refused and writes nothing:', () => {
  it.each<[string, () => unknown, string]>([
    ['a pool', () => scene.pool, 'NOT_A_TRANSACTION'],
    ['nothing', () => undefined, 'NOT_A_TRANSACTION'],
    ['null', () => null, 'NOT_A_TRANSACTION'],
    ['a connection string', () => scene.url, 'NOT_A_TRANSACTION'],
    ['an object that is no client', () => ({ query: 'select 1' }), 'NOT_A_TRANSACTION'],
  ])('%s', async (_, tx, code) => {
    await expect(scene.outbox.enqueue(tx() as never, { topic: 'orders', key: 'a', payload: 1 })).rejects.toSatisfy(
      (error) => error instanceof OutboxError && error.code === code,
    )
    expect(await visible()).toBe(0)
  })
})

describe('a savepoint that is rolled back takes its event with it', () => {
  it('and what was enqueued before and after it is delivered in order', async () => {
    await scene.transaction(async (tx) => {
      const enqueue = (payload: string): Promise<unknown> =>
        scene.outbox.enqueue(tx, { topic: 'orders', key: 'a', payload })
      await enqueue('outer')
      await tx.query('savepoint one')
      await enqueue('inner')
      await tx.query('savepoint two')
      await enqueue('innermost')
      await tx.query('release two')
      await tx.query('rollback to one')
      await enqueue('after')
      await tx.query('savepoint three')
      await enqueue('kept')
      await tx.query('release three')
    })
    expect((await scene.deliver()).map(json)).toEqual(['outer', 'after', 'kept'])
  })

  it('and a statement that failed inside it stops nothing', async () => {
    await scene.transaction(async (tx) => {
      await tx.query('savepoint one')
      await scene.outbox.enqueue(tx, { topic: 'orders', key: 'a', payload: 'inner' })
      await expect(tx.query('select 1 / 0')).rejects.toMatchObject({ code: '22012' })
      await tx.query('rollback to one')
      await scene.outbox.enqueue(tx, { topic: 'orders', key: 'a', payload: 'after' })
    })
    expect((await scene.deliver()).map(json)).toEqual(['after'])
  })

  it('through outbox.transaction inside a transaction too, which commits nothing of the outer one', async () => {
    const client = await scene.pool.connect()
    const inner = (payload: string, fail: boolean): Promise<void> =>
      scene.outbox.transaction(client, async (tx) => {
        await scene.outbox.enqueue(tx, { topic: 'orders', key: 'a', payload })
        if (fail) throw new Error('inner')
      })
    await client.query('begin')
    await inner('first', false)
    await expect(inner('second', true)).rejects.toThrow('inner')
    await inner('third', false)
    expect(await visible()).toBe(0)
    await client.query('commit')
    expect((await scene.deliver()).map(json)).toEqual(['first', 'third'])

    await client.query('begin')
    await inner('rolled back with the outer one', false)
    await client.query('rollback')
    client.release()
    expect(await scene.deliver()).toEqual([])
  })
})

describe('a wake-up is a hint', () => {
  it('and does no harm when there is nothing to find', async () => {
    const relay = scene.relay()
    await relay.start()
    await scene
      .transaction(async (tx) => {
        await scene.outbox.enqueue(tx, { topic: 'orders', key: 'a', payload: 'rolled back' })
        scene.outbox.wake()
        throw new Error('rolled back')
      })
      .catch(() => undefined)
    scene.outbox.wake()
    await scene.enqueue({ topic: 'orders', key: 'a', payload: 'committed' })
    await scene.broker.until(({ deliveries }) => json(deliveries.at(-1) as never) === 'committed', {
      signal: AbortSignal.timeout(10_000),
    })
    await relay.stop()
    expect((await scene.deliver()).map(json)).toEqual(['committed'])
  })
})
