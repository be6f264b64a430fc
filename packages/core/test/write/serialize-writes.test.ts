import { freshDatabase } from '@inorder/harness'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { fromPg } from '../../src/clients/from-pg.ts'
import { createOutbox } from '../../src/outbox.ts'
import { relayStand } from '../support/relay-stand.ts'
import { of, serializedOutbox } from '../support/serialized-outbox.ts'

const url = await freshDatabase()

describe('with serialized writes, a second writer of a key', () => {
  it('waits until the first has committed, and is delivered behind it', async () => {
    await using serialized = await serializedOutbox(url)
    const { outbox, payloads } = serialized
    const [first, second] = [await serialized.begin(), await serialized.begin()]
    await outbox.enqueue(first, of('a', 'first'))
    const enqueued = outbox.enqueue(second, of('a', 'second'))
    await serialized.waits(second)
    await first.query('commit')
    await enqueued
    await second.query('commit')
    expect(await payloads()).toEqual(['first', 'second'])
  })

  it('goes on when the first has rolled back, and stands alone', async () => {
    await using serialized = await serializedOutbox(url)
    const { outbox, payloads } = serialized
    const [first, second] = [await serialized.begin(), await serialized.begin()]
    await outbox.enqueue(first, of('a', 'first'))
    const enqueued = outbox.enqueue(second, of('a', 'second'))
    await serialized.waits(second)
    await first.query('rollback')
    await enqueued
    await second.query('commit')
    expect(await payloads()).toEqual(['second'])
  })

  it('waits for the savepoint of the first too, until it is rolled back', async () => {
    await using serialized = await serializedOutbox(url)
    const [first, second] = [await serialized.begin(), await serialized.begin()]
    await first.query('savepoint mine')
    await serialized.outbox.enqueue(first, of('a'))
    const enqueued = serialized.outbox.enqueue(second, of('a'))
    await serialized.waits(second)
    await first.query('rollback to savepoint mine')
    expect(await enqueued).toMatchObject({ duplicate: false })
  })
})

describe('without them', () => {
  it('the higher id may commit first; both are delivered once, in the order of their commits', async () => {
    await using stand = await relayStand()
    const relay = stand.relay()
    await relay.start()
    const first = await stand.pool.connect()
    await first.query('begin')
    await stand.outbox.enqueue(first, of('a', 'lower id'))
    await stand.enqueue({ key: 'a', payload: 'higher id' })
    expect(await stand.deliveries(1)).toEqual(['higher id'])
    await first.query('commit')
    first.release()
    expect(await stand.deliveries(2)).toEqual(['higher id', 'lower id'])
  })
})

describe('with serialized writes, nobody waits who', () => {
  it.each([
    // Their 32-bit hashes are equal: pg_advisory_xact_lock(hashtext(key)) would make them wait.
    ['writes to another key, even one with the same hashtext', of('order-118181')],
    ['writes to the same key of another topic', { ...of('order-3687'), topic: 'invoices' }],
    ['writes an event without a key', of(null)],
    ['writes an event without order', { ...of('order-3687'), ordering: 'none' as const }],
  ])('%s', async (_, other) => {
    await using serialized = await serializedOutbox(url)
    const { rows } = await serialized.pool.query(`select hashtext('order-3687') = hashtext('order-118181') equal`)
    expect(rows).toEqual([{ equal: true }])
    const [first, second] = [await serialized.begin(), await serialized.begin()]
    await serialized.outbox.enqueue(first, of('order-3687'))
    await serialized.refuseToWait(second)
    await serialized.outbox.enqueue(second, other)
    // And what would have to wait is noticed so.
    await expect(serialized.outbox.enqueue(second, of('order-3687'))).rejects.toMatchObject({ code: '55P03' })
  })

  it('writes to the same key in another schema', async () => {
    await using serialized = await serializedOutbox(url)
    const other = createOutbox({ client: fromPg(serialized.pool), schema: 'other', serializeWrites: true })
    await other.migrate()
    const [first, second] = [await serialized.begin(), await serialized.begin()]
    await serialized.outbox.enqueue(first, of('a'))
    await serialized.refuseToWait(second)
    await other.enqueue(second, of('a'))
    await other.close()
  })

  it('holds advisory locks of the application, on one number or on two', async () => {
    await using serialized = await serializedOutbox(url)
    const [application, writer] = [await serialized.begin(), await serialized.begin()]
    await application.query('select pg_advisory_xact_lock(stripe) from generate_series(0, 2048) stripe')
    for (const owner of [0, 1, `hashtext('outbox')`, `'outbox.events'::regclass::int`])
      await application.query(
        `select pg_advisory_xact_lock(${String(owner)}, stripe) from generate_series(0, 1024) stripe`,
      )
    await serialized.refuseToWait(writer)
    await serialized.outbox.enqueue(writer, of('a'))
  })
})

describe('with serialized writes, total order', () => {
  it('makes every two of its writers wait for each other, and no writer of a key', async () => {
    await using serialized = await serializedOutbox(url)
    const [first, second, third] = [await serialized.begin(), await serialized.begin(), await serialized.begin()]
    const total = { ordering: 'total' as const }
    await serialized.outbox.enqueue(first, { ...of('a'), ...total })
    const enqueued = serialized.outbox.enqueue(second, { ...of(null), topic: 'other', ...total })
    await serialized.waits(second)
    await serialized.refuseToWait(third)
    // Every stripe of the keys is free.
    await serialized.outbox.enqueue(
      third,
      Array.from({ length: 20_000 }, (_, key) => of(String(key))),
    )
    await first.query('commit')
    await enqueued
  })

  it('is what an event without an ordering has where it is the mode of the outbox', async () => {
    await using serialized = await serializedOutbox()
    await serialized.pool.query(
      `alter table outbox.events alter column ordering set default 'total'; update outbox.settings set ordering = 'total'`,
    )
    const [first, second] = [await serialized.begin(), await serialized.begin()]
    await serialized.outbox.enqueue(first, of(null))
    await serialized.refuseToWait(second)
    await expect(serialized.outbox.enqueue(second, of('b'))).rejects.toMatchObject({ code: '55P03' })
  })
})

describe('the SQL function', () => {
  const write = `select outbox.enqueue('orders', 'a', '1')`

  it('waits for enqueue and enqueue for it, once migrate was told to serialize', async () => {
    await using serialized = await serializedOutbox(url)
    const { outbox } = serialized
    const [first, second, third] = [await serialized.begin(), await serialized.begin(), await serialized.begin()]
    await first.query(write)
    const enqueued = outbox.enqueue(second, of('a'))
    await serialized.waits(second)
    await first.query('commit')
    await enqueued
    const called = third.query(write)
    await serialized.waits(third)
    await second.query('commit')
    await called
  })

  it('gives a plain INSERT its turn', async () => {
    await using serialized = await serializedOutbox(url)
    const [first, second] = [await serialized.begin(), await serialized.begin()]
    await first.query(`select outbox.lock_keys(array['orders'], array['a'])`)
    await first.query(`insert into outbox.events (topic, key) values ('orders', 'a')`)
    const enqueued = serialized.outbox.enqueue(second, of('a'))
    await serialized.waits(second)
    await first.query('commit')
    await enqueued
  })

  it('follows what migrate was given last, and keeps it where migrate was given nothing', async () => {
    await using serialized = await serializedOutbox(url)
    const { pool } = serialized
    const migrate = (options: { serializeWrites?: boolean }): Promise<unknown> =>
      createOutbox({ client: fromPg(pool), ...options }).migrate()
    const stored = async (): Promise<unknown> =>
      (await pool.query<{ on: boolean }>('select serialize_writes "on" from outbox.settings')).rows[0]?.on
    expect(await stored()).toBe(true)
    await migrate({})
    expect(await stored()).toBe(true)
    await migrate({ serializeWrites: false })
    expect(await stored()).toBe(false)
    const [first, second] = [await serialized.begin(), await serialized.begin()]
    await first.query(write)
    await serialized.refuseToWait(second)
    await second.query(write)
  })

  it('is told by the printable SQL as well', async () => {
    const client = fromPg(new pg.Pool())
    const sqlOf = (options: { serializeWrites?: boolean }): string =>
      createOutbox({ client, ...options }).migrationSql()
    expect(sqlOf({ serializeWrites: true })).toMatch(/set serialize_writes = true::boolean where .*;\n$/)
    expect(sqlOf({ serializeWrites: false })).toMatch(/set serialize_writes = false::boolean where .*;\n$/)
    expect(sqlOf({})).not.toMatch(/set serialize_writes/)
  })
})
