import { type PostgresServer, startPostgres } from '@inorder/harness'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { json, openScene, type Scene } from './scene.ts'

/**
 * A server on which a commit can be stopped while it holds its locks: `synchronous_commit = on` waits for a standby that
 * does not exist, everybody else has `local`.
 */
let server: PostgresServer
let scene: Scene
beforeAll(async () => {
  server = await startPostgres({ settings: { synchronous_standby_names: 'nobody', synchronous_commit: 'local' } })
  scene = await openScene({ url: await server.createDatabase() })
})
afterAll(async () => {
  await scene.close()
  await server.stop()
})

/** Whoever holds or awaits the one lock that every commit with a NOTIFY in it takes. */
const notifyLock = "locktype = 'object' and database = 0 and classid = 'pg_database'::regclass and objid = 0"

const ways: Readonly<Record<string, (tx: Pick<pg.PoolClient, 'query'>, scene: Scene) => Promise<unknown>>> = {
  'outbox.enqueue': (tx, { outbox }) =>
    outbox.enqueue(tx, [
      { topic: 'orders', key: 'a', payload: 1 },
      { topic: 'orders', key: 'ż'.repeat(512), payload: 'x'.repeat(1_000_000) },
      { topic: 'orders', key: 'later', payload: 1, delayMs: 10 },
    ]),
  'the SQL function': (tx) => tx.query(`select outbox.enqueue('orders', 'a', '1')`),
  'a plain insert': (tx) => tx.query(`insert into outbox.events (topic, key, payload) values ('orders', 'a', '1')`),
}

describe('a business transaction', () => {
  it.each(Object.entries(ways))(
    'that enqueues by %s commits while somebody holds the lock of NOTIFY',
    async (_, way) => {
      const holder = new pg.Client({ connectionString: scene.url })
      holder.on('error', () => undefined)
      await holder.connect()
      const { rows } = await holder.query<{ pid: number }>('select pg_backend_pid() pid')
      await holder.query('set synchronous_commit = on')
      await holder.query("begin; insert into orders values (floor(random() * 1e15)); notify somewhere, 'x'")
      const stuck = holder.query('commit').catch(() => undefined)
      const holds = (): Promise<number> =>
        scene.count(`select count(*) from pg_locks where ${notifyLock} and granted and pid = $1`, [rows[0]?.pid])
      await expect.poll(holds, { timeout: 10_000 }).toBe(1)

      // Each of these would wait behind that commit for ever.
      const writers = Array.from({ length: 8 }, async () => {
        const client = await scene.pool.connect()
        await client.query("set statement_timeout = '20s'")
        for (let n = 0; n < 5; n++) {
          await client.query('begin')
          await client.query('insert into orders values (floor(random() * 1e15))')
          await way(client, scene)
          await client.query('commit')
        }
        await client.query('reset statement_timeout')
        client.release()
      })
      await Promise.all(writers)
      expect(await holds()).toBe(1)
      await scene.pool.query('select pg_cancel_backend($1)', [rows[0]?.pid])
      await stuck
      await holder.end()
    },
  )

  it('by outbox.transaction too, although it wakes relays, and they deliver meanwhile', async () => {
    await scene.deliver()
    const relay = scene.relay()
    await relay.start()
    const holder = new pg.Client({ connectionString: scene.url })
    await holder.connect()
    const { rows } = await holder.query<{ pid: number }>('select pg_backend_pid() pid')
    await holder.query('set synchronous_commit = on')
    await holder.query("begin; insert into orders values (floor(random() * 1e15)); notify somewhere, 'x'")
    const stuck = holder.query('commit')
    const before = scene.broker.deliveries.length
    for (let payload = 0; payload < 20; payload++) await scene.enqueue({ topic: 'orders', key: 'b', payload })
    await scene.broker.until(({ count }) => count === before + 20, { signal: AbortSignal.timeout(15_000) })
    expect(scene.broker.deliveries.slice(before).map(json)).toEqual(Array.from({ length: 20 }, (_, n) => n))
    // Who waits for that lock is the one connection that wakes other processes, and it is in no transaction.
    const waiting = await scene.pool.query<{ query: string; writes: boolean }>(
      `select query, backend_xid is not null and query !~ 'pg_notify' writes from pg_stat_activity
       where pid in (select pid from pg_locks where ${notifyLock} and not granted)`,
    )
    expect(waiting.rows.filter(({ query, writes }) => writes || !/^select pg_notify\(\$1, \$2\)$/.test(query))).toEqual(
      [],
    )
    await scene.pool.query('select pg_cancel_backend($1)', [rows[0]?.pid])
    await stuck
    await holder.end()
    await relay.stop()
  })
})

describe('writers in a hurry', () => {
  it('never hold the lock of NOTIFY, and the notifications carry nothing', async () => {
    const heard: string[] = []
    const listener = new pg.Client({ connectionString: scene.url })
    await listener.connect()
    listener.on('notification', ({ payload }) => heard.push(payload ?? ''))
    const relay = scene.relay()
    await relay.start()
    const { rows } = await scene.pool.query<{ channel: string }>(
      `select 'inorder:' || left(encode(sha256('outbox'), 'hex'), 16) channel`,
    )
    await listener.query(`listen ${pg.escapeIdentifier(rows[0]?.channel ?? '')}`)

    const backends = new Set<number>()
    const hurry = { over: false }
    const writers = Promise.all(
      Array.from({ length: 16 }, async (_, writer) => {
        for (let n = 0; n < 40; n++) {
          await scene.transaction(async (tx) => {
            const { rows: own } = await tx.query<{ pid: number }>('select pg_backend_pid() pid')
            backends.add(own[0]?.pid ?? 0)
            await scene.outbox.enqueue(tx, { topic: 'orders', key: `w${String(writer)}`, payload: n })
          })
        }
      }),
    ).finally(() => {
      hurry.over = true
    })
    let looks = 0
    while (!hurry.over) {
      const { rows: holders } = await scene.pool.query<{ pid: number }>(`select pid from pg_locks where ${notifyLock}`)
      expect(holders.filter(({ pid }) => backends.has(pid))).toEqual([])
      looks += 1
    }
    await writers
    expect(looks).toBeGreaterThan(3)
    await relay.drain()
    await relay.stop()
    await expect.poll(() => heard.length, { timeout: 10_000 }).toBeGreaterThan(0)
    expect(new Set(heard)).toEqual(new Set(['']))
    // 640 commits, and by far fewer notifications.
    expect(heard.length).toBeLessThan(400)
    await listener.end()
  })
})
