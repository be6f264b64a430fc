import { createOutbox, fromPg, type SqlConnection, type SqlConnector } from '@inorder/core'
import { freshDatabase } from '@inorder/harness'
import { memoryBroker, memoryPublisher } from '@inorder/relay-memory'
import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { json, openScene } from './scene.ts'

const pools: pg.Pool[] = []
afterAll(() => Promise.all(pools.map((pool) => pool.end())))

function openPool(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 8 })
  pool.on('error', () => undefined)
  pools.push(pool)
  return pool
}

/** What a later release may do to the schema: it only adds. Each runs while the release before is at work. */
const additions: readonly string[] = [
  'alter table outbox.events add column region text',
  "alter table outbox.events add column priority integer not null default 0, add column note text default 'x'",
  'create index concurrently region on outbox.events (region) where region is not null',
  'alter table outbox.slots add column hint text',
  'alter table outbox.relays add column zone text',
  'alter table outbox.failures add column detail jsonb',
  "alter table outbox.settings add column colour text not null default 'blue'",
  'create table outbox.later (id bigint primary key)',
  'alter table outbox.events add constraint region_is_short check (octet_length(region) < 100) not valid',
  'alter table outbox.events validate constraint region_is_short',
  'analyze outbox.events',
  "insert into outbox.migrations (name) values ('0099-later')",
  'update outbox.settings set version = version + 1',
]

describe('a schema that a newer release migrates', () => {
  it('while relays and producers of this one are at work changes nothing for them, and they start on it', async () => {
    const scene = await openScene()
    const relays = [scene.relay({ leaseMs: 2000 }), scene.relay({ leaseMs: 2000 })]
    for (const relay of relays) await relay.start()
    let rounds = 0
    let writing = true
    const writers = Promise.all(
      [0, 1, 2].map(async (writer) => {
        let n = 0
        for (; writing; n++) {
          await scene.enqueue({
            topic: 'orders',
            key: `k${String(writer)}`,
            payload: n,
            ...(n % 5 === 0 ? { delayMs: 5 } : {}),
          })
          await scene.pool.query(`select outbox.enqueue('orders', 'sql', $1)`, [String(n)])
          rounds += 1
        }
        return n
      }),
    )
    // Failures are written and retried meanwhile, too.
    scene.broker.reject(({ eventId, attempt }) => attempt === 1 && eventId.endsWith('7'), { retryAfterMs: 1 })
    for (const addition of additions) {
      const seen = rounds
      await scene.pool.query(addition)
      await expect.poll(() => rounds, { timeout: 20_000 }).toBeGreaterThan(seen + 6)
      if (addition.startsWith('alter table')) {
        // In a deploy each process of the old release may start once more.
        const [old] = relays.splice(0, 1)
        await old?.stop()
        const again = scene.relay({ leaseMs: 2000 })
        await again.start()
        relays.push(again)
      }
    }
    writing = false
    const counts = await writers
    for (const relay of relays) await relay.drain()
    for (const relay of relays) {
      expect(relay.health()).toMatchObject({ state: 'running', database: { ok: true } })
      await relay.stop()
    }
    for (const [writer, count] of counts.entries()) {
      const own = scene.broker.deliveries.filter(({ key }) => key === `k${String(writer)}`).map(json)
      expect([...new Set(own)].sort((a, b) => Number(a) - Number(b))).toEqual(
        Array.from({ length: count }, (_, n) => n),
      )
      const inLine = [...new Set(own)].filter((n) => Number(n) % 5 !== 0)
      expect(inLine).toEqual(inLine.toSorted((a, b) => Number(a) - Number(b)))
    }
    expect(await scene.count(`select count(*) from outbox.events where status <> 'published'`)).toBe(0)
    expect(await scene.outbox.migrate()).toEqual({ applied: [] })
    await scene.close()
  }, 120_000)
})

describe('a relay that is newer than the schema', () => {
  it('does not start, names the steps that are missing, and starts after them', async () => {
    const scene = await openScene()
    const { rows } = await scene.pool.query<{ name: string }>('select name from outbox.migrations order by name')
    const steps = rows.map(({ name }) => name)
    expect(steps.length).toBeGreaterThan(3)
    await scene.enqueue({ topic: 'orders', key: 'a', payload: 1 })
    for (const missing of [steps.slice(-1), steps.slice(1)]) {
      await scene.pool.query('delete from outbox.migrations where name = any($1)', [missing])
      await expect(scene.relay().start()).rejects.toMatchObject({
        code: 'SCHEMA_BEHIND',
        message: expect.stringMatching(new RegExp(`${missing.join(', ')}.*outbox\\.migrate\\(\\)`)) as string,
      })
      await scene.pool.query('insert into outbox.migrations (name) select unnest($1::text[])', [missing])
    }
    await scene.pool.query('update outbox.settings set version = 0')
    await expect(scene.relay().start()).rejects.toMatchObject({ code: 'SCHEMA_BEHIND' })
    await scene.pool.query('update outbox.settings set version = 1')
    expect((await scene.deliver()).map(json)).toEqual([1])
    await scene.close()
  })
})

describe('a migration', () => {
  /** Ends the server session right before, or right after, the statement with this number. */
  function dyingAt<C extends SqlConnector>(client: C, number: number, when: 'before' | 'after'): C {
    let sent = 0
    return {
      ...client,
      async connect(): Promise<SqlConnection> {
        const connection = await client.connect()
        return {
          ...connection,
          async run(statement) {
            sent += 1
            if (sent !== number) return connection.run(statement)
            if (when === 'after') await connection.run(statement)
            await connection
              .run({ text: 'select pg_terminate_backend(pg_backend_pid())', values: [] })
              .catch(() => undefined)
            throw new Error('the migrator was killed')
          },
        }
      },
    }
  }

  async function migrateDying(pool: pg.Pool, number: number, when: 'before' | 'after'): Promise<boolean> {
    const outbox = createOutbox({ client: dyingAt(fromPg(pool), number, when) })
    try {
      await outbox.migrate()
      return true
    } catch {
      return false
    } finally {
      await outbox.close()
    }
  }

  it.each(['before', 'after'] as const)(
    'that is killed right %s any of its statements completes when it is run again',
    async (when) => {
      const url = await freshDatabase()
      const pool = openPool(url)
      const whole = createOutbox({ client: fromPg(pool) })
      let kills = 0
      // Each try comes one statement further than the last, from what that one left.
      for (let number = 1; ; number++) {
        if (await migrateDying(pool, number, when)) break
        kills += 1
        // Once it has begun nothing is half done: the tables are there together with their step, or not at all.
        const { rows } = await pool.query<{ made: boolean; done: boolean }>(
          `select to_regclass('outbox.events') is not null made, to_regclass('outbox.settings') is not null done`,
        )
        expect(rows[0]?.made).toBe(rows[0]?.done)
      }
      expect(kills).toBeGreaterThan(20)
      expect(await whole.migrate()).toEqual({ applied: [] })
      const broker = memoryBroker()
      await whole.transaction(pool, (tx) => whole.enqueue(tx, { topic: 'orders', key: 'a', payload: 'fine' }))
      await whole.relay({ publisher: memoryPublisher(broker) }).drain()
      expect(broker.deliveries.map(json)).toEqual(['fine'])
      const { rows } = await pool.query<{ pages: number }>(
        "select relpages pages from pg_class where oid = 'outbox.events'::regclass",
      )
      expect(rows[0]?.pages).toBeGreaterThan(0)
      await whole.close()
    },
    120_000,
  )

  it('of which two run at once, one killed in the middle, is finished by the other', async () => {
    const url = await freshDatabase()
    const [dying, living] = [openPool(url), openPool(url)]
    const other = createOutbox({ client: fromPg(living) })
    const [died, finished] = await Promise.all([migrateDying(dying, 12, 'after'), other.migrate()])
    expect(finished.applied.length + (died ? 1 : 0)).toBeGreaterThan(0)
    expect(await other.migrate()).toEqual({ applied: [] })
    const { rows } = await living.query<{ n: number }>('select count(*)::int n from outbox.migrations')
    expect(rows[0]?.n).toBeGreaterThan(3)
    await other.close()
  })
})
