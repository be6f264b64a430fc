import { createOutbox, fromPg } from '@inorder/core'
import { freshDatabase, startPostgres } from '@inorder/harness'
import { memoryBroker, memoryPublisher } from '@inorder/relay-memory'
import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { json, openScene, type Scene, text } from './scene.ts'

const scenes: Scene[] = []
afterAll(() => Promise.all(scenes.map((scene) => scene.close())))

async function scene(...options: Parameters<typeof openScene>): Promise<Scene> {
  const opened = await openScene(...options)
  scenes.push(opened)
  return opened
}

describe('an outbox in a schema of any name', () => {
  it.each(['Out-Box "v2"', "it's; --", '$inorder$', '😀'])(
    '%s: delivers in order, retries, schedules and wakes up',
    async (schema) => {
      const own = await scene({ schema })
      const events = pg.escapeIdentifier(schema) + '.events'
      const fault = own.broker.reject({ key: 'a' }, { times: 1, retryAfterMs: 0 })
      await own.enqueue(...[1, 2, 3].map((payload) => ({ topic: 'orders', key: 'a', payload })), {
        topic: 'orders',
        key: 'b',
        payload: 4,
        delayMs: 3_600_000,
      })
      await own.pool.query(`select ${pg.escapeIdentifier(schema)}.enqueue('orders', 'a', '5')`)
      await own.pool.query(`insert into ${events} (topic, key, payload) values ('orders', 'a', '6')`)
      expect((await own.deliver()).map(json)).toEqual([1, 2, 3, 5, 6])
      expect(fault.hits).toBe(1)
      await own.pool.query(`update ${events} set available_at = now() where status = 'scheduled'`)
      expect((await own.deliver()).map(json)).toEqual([4])
      expect(await own.count(`select count(*) from ${events} where status = 'published'`)).toBe(6)
    },
  )

  it.each(['', 'decoy', 'decoy, outbox'])('needs no search_path, and takes nothing from one: "%s"', async (path) => {
    const own = await scene()
    await own.pool.query(
      'create schema decoy; create table decoy.events (id int); create table decoy.settings (version int)',
    )
    const pool = new pg.Pool({
      connectionString: own.url,
      options: `-c search_path=${path.replaceAll(' ', '\\ ')}`,
      max: 8,
    })
    const outbox = createOutbox({ client: fromPg(pool) })
    const broker = memoryBroker()
    const { rows } = await pool.query<{ path: string }>(`select current_setting('search_path') path`)
    expect(rows).toEqual([{ path }])
    expect(await outbox.migrate()).toEqual({ applied: [] })
    await pool.query(`select outbox.enqueue('orders', 'a', '1')`)
    await pool.query(`insert into outbox.events (topic, key, payload) values ('orders', 'a', '2')`)
    await outbox.transaction(pool, (tx) =>
      outbox.enqueue(tx, { topic: 'orders', key: 'a', payload: 3, ordering: 'key' }),
    )
    await outbox.relay({ publisher: memoryPublisher(broker) }).drain()
    expect(broker.deliveries.map(text)).toEqual(['1', '2', '3'])
    await outbox.close()
    await pool.end()
  })
})

describe('two outboxes in two schemas of one database', () => {
  it('share nothing: neither events, event ids, topics nor groups', async () => {
    const url = await freshDatabase()
    const [first, second] = [await scene({ url }), await scene({ url, schema: 'outbox_two' })]
    const eventId = 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'
    const relays = [first.relay(), second.relay()]
    for (const relay of relays) await relay.start()
    expect(await first.enqueue({ topic: 'orders', key: 'a', payload: 'first', eventId })).toMatchObject([
      { duplicate: false },
    ])
    expect(await second.enqueue({ topic: 'orders', key: 'a', payload: 'second', eventId })).toMatchObject([
      { duplicate: false },
    ])
    // One transaction may write to both.
    await first.transaction(async (tx) => {
      await first.outbox.enqueue(tx, { topic: 'orders', key: 'a', payload: 'both, first' })
      await second.outbox.enqueue(tx, { topic: 'orders', key: 'a', payload: 'both, second' })
    })
    for (const { broker } of [first, second])
      await broker.until(({ count }) => count === 2, { signal: AbortSignal.timeout(10_000) })
    for (const relay of relays) await relay.stop()
    expect((await first.deliver()).map(json)).toEqual(['first', 'both, first'])
    expect((await second.deliver()).map(json)).toEqual(['second', 'both, second'])
  })
})

describe('a relay names the remedy and starts nothing where the schema', () => {
  const remedy = expect.stringMatching(/outbox\.migrate\(\).*outbox\.migrationSql\(\)/) as string
  const start = async (own: Scene, schema?: string): Promise<void> => {
    const pool = new pg.Pool({ connectionString: own.url, max: 8 })
    const outbox = createOutbox({ client: fromPg(pool), ...(schema === undefined ? {} : { schema }) })
    try {
      await outbox.relay({ publisher: memoryPublisher(memoryBroker()) }).start()
    } finally {
      await outbox.close()
      await pool.end()
    }
  }

  it('is missing', async () => {
    await expect(start(await scene(), 'nowhere')).rejects.toMatchObject({ code: 'SCHEMA_MISSING', message: remedy })
  })

  it('is older than the code', async () => {
    const own = await scene()
    await own.pool.query('update outbox.settings set version = 0')
    await expect(start(own)).rejects.toMatchObject({ code: 'SCHEMA_BEHIND', message: remedy })
    await own.pool.query('update outbox.settings set version = 99')
    await expect(start(own)).resolves.toBeUndefined()
  })

  it('was made where the hash function gives other values', async () => {
    const own = await scene()
    await own.pool.query('update outbox.settings set hash_check = hash_check + 1')
    await expect(start(own)).rejects.toMatchObject({
      code: 'SCHEMA_CHANGED',
      message: expect.stringContaining('drain') as string,
    })
  })

  it('is fine but the pool is too small', async () => {
    const own = await scene()
    const pool = new pg.Pool({ connectionString: own.url, max: 3 })
    const relay = createOutbox({ client: fromPg(pool) }).relay({ publisher: memoryPublisher(memoryBroker()) })
    for (const act of [(): Promise<unknown> => relay.start(), (): Promise<unknown> => relay.drain()]) {
      await expect(act()).rejects.toMatchObject({
        code: 'OPTIONS_INVALID',
        message: expect.stringContaining('max is 3') as string,
      })
    }
    expect(pool.totalCount).toBe(0)
    await pool.end()
  })
})

describe.each([14, 18] as const)('on PostgreSQL %i', (major) => {
  it('events are delivered in order, retried, scheduled, and told apart from duplicates', async () => {
    const server = await startPostgres({ major })
    try {
      const own = await openScene({ url: await server.createDatabase() })
      own.broker.reject({ key: 'a' }, { times: 2, retryAfterMs: 0 })
      const payloads = Array.from({ length: 300 }, (_, index) => index)
      const [first] = await own.enqueue(...payloads.map((payload) => ({ topic: 'orders', key: 'a', payload })))
      await expect(
        own.enqueue({ topic: 'orders', key: 'a', payload: 0, eventId: first?.eventId ?? '' }),
      ).resolves.toMatchObject([{ duplicate: true }])
      await own.enqueue(
        { topic: 'orders', key: 'a', payload: 'large'.repeat(20_000) },
        { topic: 'orders', key: 'a', payload: 'later', delayMs: 3_600_000 },
      )
      const delivered = await own.deliver()
      expect(delivered.map(json)).toEqual([...payloads, 'large'.repeat(20_000)])
      expect(delivered[0]?.attempt).toBe(3)
      await own.pool.query(`update outbox.events set available_at = now() where status = 'scheduled'`)
      expect((await own.deliver()).map(json)).toEqual(['later'])
      await own.close()
    } finally {
      await server.stop()
    }
  }, 60_000)
})
