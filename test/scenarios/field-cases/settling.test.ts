import { createOutbox, fromPg, type Relay, type RelayOptions } from '@inorder/core'
import { startProxy, type TcpProxy } from '@inorder/harness'
import { memoryPublisher } from '@inorder/relay-memory'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { observe, type Observed } from './observed.ts'
import { json, openScene, type Scene } from './scene.ts'

const leaseMs = 900
const soon = (): AbortSignal => AbortSignal.timeout(25_000)

/** A relay whose connections to the database can be cut, and that goes on when they are back. */
interface CutOff extends AsyncDisposable {
  readonly proxy: TcpProxy
  readonly observed: Observed
}

async function behindProxy(scene: Scene): Promise<CutOff> {
  const url = new URL(scene.url)
  const proxy = await startProxy(Number(url.port))
  url.port = String(proxy.port)
  const pool = new pg.Pool({ connectionString: url.href, max: 12 })
  pool.on('error', () => undefined)
  const outbox = createOutbox({ client: fromPg(pool) })
  const relay = (options: Partial<RelayOptions> = {}): Relay =>
    outbox.relay({ publisher: memoryPublisher(scene.broker), leaseMs, ...options })
  return {
    proxy,
    observed: observe({ relay }),
    async [Symbol.asyncDispose]() {
      await outbox.close()
      await pool.end()
      await proxy.close()
    },
  }
}

const keys = Array.from({ length: 20 }, (_, n) => `k${String(n)}`)

/** Brings twenty runs of two events in flight, cuts the relay off, and lets the broker acknowledge them. */
async function cutOffBeforeSettling(scene: Scene, { proxy, observed }: CutOff): Promise<void> {
  for (const key of keys)
    await scene.enqueue({ topic: 'orders', key, payload: 1 }, { topic: 'orders', key, payload: 2 })
  const hang = scene.broker.hang()
  await observed.relay.start()
  await observed.until(() => hang.hits === 20)
  proxy.refuse(true)
  proxy.reset()
  hang.end()
  await scene.broker.until(({ count }) => count === 40, { signal: soon() })
}

async function leaseOver(scene: Scene): Promise<void> {
  const signal = soon()
  while ((await scene.count('select count(*) from outbox.relays where expires_at > clock_timestamp()')) > 0)
    signal.throwIfAborted()
}

function ofKey(scene: Scene, key: string): unknown[] {
  return scene.broker.deliveries.filter((delivery) => delivery.key === key).map(json)
}

describe('acknowledgements that cannot be written', () => {
  it('for a moment are written afterwards, and nothing is published again', async () => {
    await using scene = await openScene()
    await using cut = await behindProxy(scene)
    await cutOffBeforeSettling(scene, cut)
    cut.proxy.refuse(false)
    await cut.observed.relay.drain()
    for (const key of keys) expect(ofKey(scene, key)).toEqual([1, 2])
    expect(await scene.count(`select count(*) from outbox.events where status = 'published' and attempts = 0`)).toBe(40)
  })

  it('for longer than the lease are facts all the same: a relay that was alone publishes nothing again', async () => {
    await using scene = await openScene()
    await using cut = await behindProxy(scene)
    await cutOffBeforeSettling(scene, cut)
    await leaseOver(scene)
    cut.proxy.refuse(false)
    await cut.observed.until(() => cut.observed.relay.counts().published === 40)
    await cut.observed.relay.drain()
    for (const key of keys) expect(ofKey(scene, key)).toEqual([1, 2])
  })

  it('before another relay takes over are repeated by it once at most, each key in order', async () => {
    await using scene = await openScene()
    await using cut = await behindProxy(scene)
    await cutOffBeforeSettling(scene, cut)
    await leaseOver(scene)
    const other = scene.relay({ leaseMs })
    await other.start()
    await scene.broker.until(({ count }) => count === 80, { signal: soon() })
    cut.proxy.refuse(false)
    await cut.observed.until(() => cut.observed.relay.health().leaseHolds)
    await scene.enqueue(...keys.map((key) => ({ topic: 'orders', key, payload: 3 })))
    await Promise.all([other.drain(), cut.observed.relay.drain()])
    for (const key of keys) expect(ofKey(scene, key)).toEqual([1, 2, 1, 2, 3])
    const { rows } = await scene.pool.query('select distinct status, attempts from outbox.events')
    expect(rows).toEqual([{ status: 'published', attempts: 0 }])
    await other.stop()
  })
})

describe('a publish that takes long', () => {
  it('holds no transaction open, no lock, and nobody else back', async () => {
    await using scene = await openScene()
    const name = await scene.pool.query<{ name: string }>('select quote_ident(current_database()) as name')
    // Sessions of ours that sat in a transaction would be ended by the server.
    await scene.pool.query(
      `alter database ${name.rows[0]?.name ?? ''} set idle_in_transaction_session_timeout = '100ms'`,
    )
    await using fresh = await openScene({ url: scene.url })
    const slow = fresh.broker.hang({ match: { key: 'slow' } })
    const relays = [observe(fresh, { leaseMs }), observe(fresh, { leaseMs })]
    await Promise.all(relays.map(({ relay }) => relay.start()))
    await fresh.enqueue({ topic: 'orders', key: 'slow', payload: 1 })
    await Promise.race(relays.map(({ until }) => until(() => slow.hits === 1)))
    const ours = `from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`
    const [from, at] = [relays.map(({ finds }) => finds()), performance.now()]
    for (
      let round = 0;
      performance.now() - at < 1500 || relays.some(({ finds }, n) => finds() < (from[n] ?? 0) + 10);
      round++
    ) {
      expect(
        await fresh.count(
          `select count(*) ${ours} and state like 'idle in transaction%' and clock_timestamp() - state_change > interval '100 ms'`,
        ),
      ).toBe(0)
      expect(
        await fresh.count(
          `select count(*) from pg_locks where database = (select oid from pg_database where datname = current_database())
           and not granted`,
        ),
      ).toBe(0)
      if (round < 20) await fresh.enqueue({ topic: 'orders', key: `other-${String(round)}`, payload: round })
    }
    await fresh.broker.until(({ count }) => count === 20, { signal: soon() })
    expect(slow.hits).toBe(1)
    slow.end()
    await fresh.broker.until(({ count }) => count === 21, { signal: soon() })
    await Promise.all(relays.map(({ relay }) => relay.drain()))
    expect(await fresh.count(`select count(*) from outbox.events where status = 'published'`)).toBe(21)
    expect(fresh.broker.count).toBe(21)
    // No session was ended under a relay.
    for (const { relay, signals } of relays) {
      expect(signals.filter(({ kind }) => kind === 'database')).toEqual([])
      await relay.stop()
    }
  })
})
