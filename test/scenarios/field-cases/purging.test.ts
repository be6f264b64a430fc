import type { SqlConnector, Statement } from '@inorder/core'
import { type PostgresServer, startPostgres } from '@inorder/harness'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openScene, type Scene } from './scene.ts'

const old = 30_000
const young = 1000
const failed = 10

let server: PostgresServer
let scene: Scene
beforeAll(async () => {
  server = await startPostgres()
  scene = await openScene({ url: await server.createDatabase(), alter: stoppingCommits })
})
afterAll(async () => {
  await scene.close()
  await server.stop()
})

/** While it is set, a COMMIT on a session of the outbox waits for it. */
let commits: { readonly asked: () => void; readonly allowed: Promise<void> } | undefined

function stoppingCommits<C extends SqlConnector>(client: C): C {
  return {
    ...client,
    async connect() {
      const connection = await client.connect()
      return {
        ...connection,
        async run(statement: Statement) {
          if (statement.text === 'commit' && commits !== undefined) {
            commits.asked()
            await commits.allowed
          }
          return connection.run(statement)
        },
      }
    },
  }
}

async function fill(): Promise<void> {
  await scene.pool.query('truncate outbox.events, outbox.failures')
  const insert = (count: number, columns: string, values: string): Promise<unknown> =>
    scene.pool.query(
      `insert into outbox.events (topic, key, payload, ${columns}) select 'old', (n % 100)::text, '{}', ${values} from generate_series(1, $1) n`,
      [count],
    )
  await insert(old, 'status, published_at', "'published', now() - interval '8 days' - n * interval '1 s'")
  await insert(young, 'status, published_at', "'published', now() - interval '6 days 23 hours 59 minutes'")
  await insert(failed, 'status, failed_at, attempts', "'failed', now() - interval '30 days', 10")
  await insert(failed, 'status, failed_at, attempts', "'held', now() - interval '30 days', 10")
  await insert(
    failed,
    'status, available_at, created_at',
    "'scheduled', now() + interval '1 day', now() - interval '30 days'",
  )
  await insert(failed, 'status, attempts, available_at', "'pending', 1, now() + interval '1 day'")
  await scene.pool.query(
    `insert into outbox.failures (event, at, requeues, attempt, relay, outcome, error)
select id, created_at, 0, 1, 'r', 'rejected', 'no' from outbox.events where id % 10 = 0`,
  )
}

describe('purging', () => {
  it('by two at once and by a relay takes exactly what is past its retention, in short steps, beside traffic', async () => {
    await fill()
    const kept = await scene.count(
      "select count(*) from outbox.failures f join outbox.events e on e.id = f.event where published_at is null or published_at > now() - interval '7 days'",
    )
    const relay = scene.relay({ leaseMs: 2000 })
    await relay.start()
    const steps: number[] = []
    let writing = true
    const waits: number[] = []
    const traffic = Promise.all(
      [0, 1, 2, 3].map(async (writer) => {
        let n = 0
        for (; writing; n++) {
          const from = performance.now()
          await scene.enqueue({ topic: 'orders', key: `w${String(writer)}`, payload: n })
          waits.push(performance.now() - from)
        }
        return n
      }),
    )
    // Somebody has one of the old rows locked all the time: it stays, and nobody waits for it.
    const person = await scene.pool.connect()
    await person.query('begin')
    const { rows } = await person.query<{ id: string }>(
      `select id from outbox.events where id = (
select id from outbox.events where published_at < now() - interval '7 days' order by published_at offset 500 limit 1) for update`,
    )
    let last = performance.now()
    const purges = await Promise.all(
      ['jane', 'joe'].map((actor) =>
        scene.outbox.operator({ actor }).purge({
          onProgress() {
            steps.push(performance.now() - last)
            last = performance.now()
          },
        }),
      ),
    )
    writing = false
    const written = (await traffic).reduce((sum, count) => sum + count, 0)
    expect(purges.every(({ finished }) => finished)).toBe(true)
    expect(purges.reduce((sum, { deleted }) => sum + deleted, 0)).toBe(old - 1)
    expect(await scene.count('select count(*) from outbox.events where id = $1', [rows[0]?.id])).toBe(1)
    await person.query('rollback')
    person.release()
    expect(await scene.outbox.operator({ actor: 'jane' }).purge()).toMatchObject({ deleted: 1 })
    await scene.broker.until(({ count }) => count === written, { signal: AbortSignal.timeout(20_000) })
    await relay.drain()
    await relay.stop()

    const { rows: left } = await scene.pool.query<{ status: string; n: number }>(
      "select status, count(*)::int n from outbox.events where topic = 'old' group by 1 order by 1",
    )
    expect(left).toEqual([
      { status: 'failed', n: failed },
      { status: 'held', n: failed },
      { status: 'pending', n: failed },
      { status: 'published', n: young },
      { status: 'scheduled', n: failed },
    ])
    expect(
      await scene.count("select count(*) from outbox.events where topic = 'orders' and status = 'published'"),
    ).toBe(written)
    expect(await scene.count('select count(*) from outbox.failures')).toBe(kept)
    // Steps of 1,000 rows take some 30 ms; only the most loaded machine needs a second for one.
    expect(steps.length).toBeGreaterThanOrEqual(old / 1000)
    expect(Math.max(...steps)).toBeLessThan(5000)
    waits.sort((a, b) => a - b)
    expect(waits[Math.floor(waits.length * 0.99)]).toBeLessThan(5000)
    expect(await scene.count('select deadlocks from pg_stat_database where datname = current_database()')).toBe(0)
  }, 120_000)

  it('by three relays at once goes on behind a backlog, one of them at a time, and in steps of 1,000', async () => {
    await fill()
    const purged: number[] = []
    // A short retention looks every second; what is to stay lies far away from it.
    await scene.pool.query(
      "update outbox.events set published_at = now() + interval '1 hour' where published_at > now() - interval '7 days'",
    )
    const relays = Array.from({ length: 3 }, () =>
      scene.relay({
        leaseMs: 2000,
        retainPublishedMs: 1000,
        onSignal(signal) {
          if (signal.kind === 'purged') purged.push(signal.events)
        },
      }),
    )
    for (const relay of relays) await relay.start()
    await expect.poll(() => purged.reduce((sum, n) => sum + n, 0), { timeout: 60_000, interval: 200 }).toBe(old)
    for (const relay of relays) await relay.stop()
    expect(Math.max(...purged)).toBeLessThanOrEqual(1000)
    expect(await scene.count('select count(*) from outbox.events')).toBe(young + 4 * failed)
  }, 120_000)

  it('that has not committed yet keeps nobody waiting: writers, relays, operators and other purgers', async () => {
    await fill()
    let [asked, allow] = [(): void => undefined, (): void => undefined]
    const stopped = new Promise<void>((resolve) => (asked = resolve))
    commits = { asked, allowed: new Promise((resolve) => (allow = resolve)) }
    const operator = scene.outbox.operator({ actor: 'jane' })
    const purge = operator.purge({ maxRows: 1000 })
    await stopped
    commits = undefined
    const before = scene.broker.count
    const relay = scene.relay({ leaseMs: 2000 })
    await relay.start()
    await scene.enqueue({ topic: 'orders', key: 'a', payload: 1 })
    await scene.broker.until(({ count }) => count === before + 1, { signal: AbortSignal.timeout(20_000) })
    const interrupt = new AbortController()
    const second = scene.outbox.operator({ actor: 'joe' }).purge({ signal: interrupt.signal })
    expect(await operator.requeue({ topic: 'old', status: 'failed' })).toMatchObject({ changed: failed })
    await scene.broker.until(({ count }) => count === before + 1 + failed, { signal: AbortSignal.timeout(20_000) })
    expect(await operator.counts()).toBeDefined()
    await relay.drain()
    await relay.stop()
    expect(await scene.count("select count(*) from pg_stat_activity where wait_event_type = 'Lock'")).toBe(0)
    interrupt.abort()
    expect(await second).toMatchObject({ deleted: 0, finished: false })
    allow()
    expect(await purge).toMatchObject({ deleted: 1000, finished: false })
  }, 60_000)
})
