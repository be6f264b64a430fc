import { createOutbox, fromPg, type Outbox, type PgClient, type PgPool, type RelaySignal } from '@inorder/core'
import { available, type PgBouncerServer, type PostgresServer, startPgBouncer, startPostgres } from '@inorder/harness'
import { type MemoryBroker, memoryBroker, memoryPublisher } from '@inorder/relay-memory'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { json } from './scene.ts'

describe.skipIf(!available('pgbouncer'))('through a pooler in transaction mode', () => {
  let server: PostgresServer
  let pooler: PgBouncerServer
  let database: string
  const pools: pg.Pool[] = []

  /** Fewer server sessions than clients, so that each transaction runs on another one than the last. */
  beforeAll(async () => {
    server = await startPostgres()
    pooler = await startPgBouncer({ port: server.port, settings: { default_pool_size: '6' } })
    database = new URL(await server.createDatabase()).pathname.slice(1)
  })
  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.end()))
    await pooler.stop()
    await server.stop()
  })

  function open(url = pooler.url(database)): pg.Pool {
    const pool = new pg.Pool({ connectionString: url, max: 20 })
    pool.on('error', () => undefined)
    pools.push(pool)
    return pool
  }

  function connect(): { readonly pool: pg.Pool; readonly outbox: Outbox<PgClient, PgPool | PgClient> } {
    const pool = open()
    return { pool, outbox: createOutbox({ client: fromPg(pool), serializeWrites: true }) }
  }

  async function numberOf(sql: string): Promise<number> {
    const { rows } = await direct().query<{ n: string }>(`select count(*) n from ${sql}`)
    return Number(rows[0]?.n)
  }
  let own: pg.Pool | undefined
  const direct = (): pg.Pool => (own ??= open(server.url(database)))

  const locks = (): Promise<number> =>
    numberOf(
      `pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`,
    )

  it('four processes migrate at once, each step runs once, and no lock stays', async () => {
    const starts = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const { outbox } = connect()
        const { applied } = await outbox.migrate()
        await outbox.close()
        return applied
      }),
    )
    expect(starts.flat().filter((step) => step === '0001-tables')).toHaveLength(1)
    expect(await numberOf('outbox.migrations')).toBe(new Set(starts.flat()).size)
    expect(await locks()).toBe(0)
  })

  it('writers in line and two relays deliver everything once and in order, and no lock stays', async () => {
    const { pool, outbox } = connect()
    await outbox.migrate()
    const broker = memoryBroker()
    const signals: RelaySignal[] = []
    const others = [connect(), connect()]
    const relays = others.map((each) =>
      each.outbox.relay({
        publisher: memoryPublisher(broker),
        leaseMs: 3000,
        onSignal: (signal) => void signals.push(signal),
      }),
    )
    for (const relay of relays) await relay.start()
    const committed: string[][] = []
    await Promise.all(
      Array.from({ length: 8 }, async (_, writer) => {
        for (let n = 0; n < 25; n++) {
          await outbox.transaction(pool, async (tx) => {
            const name = `${String(writer)}.${String(n)}`
            await outbox.enqueue(tx, [
              { topic: 'orders', key: 'hot', payload: name },
              { topic: 'orders', key: `k${String(writer)}`, payload: name },
            ])
            ;(committed[writer] ??= []).push(name)
          })
        }
      }),
    )
    await broker.until(({ count }) => count === 400, { signal: AbortSignal.timeout(30_000) })
    for (const relay of relays) await relay.drain()
    expect(broker.deliveries).toHaveLength(400)
    for (const [writer, names] of committed.entries()) expect(payloadsOf(broker, `k${String(writer)}`)).toEqual(names)
    const { rows } = await direct().query<{ payload: Buffer }>(
      "select payload from outbox.events where key = 'hot' order by id",
    )
    expect(payloadsOf(broker, 'hot')).toEqual(rows.map(({ payload }) => JSON.parse(payload.toString()) as unknown))
    for (const relay of relays) expect(relay.health()).toMatchObject({ state: 'running', database: { ok: true } })
    expect(await locks()).toBe(0)
    for (const relay of relays) await relay.stop()
    for (const each of others) await each.outbox.close()
    await outbox.close()
    // The broken transaction of a relay would keep a server session for itself.
    expect(
      await numberOf("pg_stat_activity where datname = current_database() and state like 'idle in transaction%'"),
    ).toBe(0)
    expect(await locks()).toBe(0)
    expect(signals.filter(({ kind }) => kind === 'fault' || kind === 'lease-lost')).toEqual([])
  }, 60_000)

  it('two relays go on while the pooler ends their server sessions again and again', async () => {
    const outboxes = [connect().outbox, connect().outbox] as const
    const [outbox] = outboxes
    const broker = memoryBroker()
    const relays = outboxes.map((each) => each.relay({ publisher: memoryPublisher(broker), leaseMs: 3000 }))
    for (const relay of relays) await relay.start()
    // A writer whose session ends between its statements has to try again, so this one does not come through the pooler.
    const writer = await direct().connect()
    for (let round = 0; round < 15; round++) {
      await outbox.transaction(writer, (tx) => outbox.enqueue(tx, { topic: 'orders', key: 'cut', payload: round }))
      await writer.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and state = 'idle'",
      )
      await broker.until(() => new Set(payloadsOf(broker, 'cut')).size === round + 1, {
        signal: AbortSignal.timeout(15_000),
      })
    }
    writer.release()
    for (const relay of relays) await relay.drain()
    for (const relay of relays) await relay.stop()
    const seen = payloadsOf(broker, 'cut')
    expect(seen.filter((payload, index) => seen.indexOf(payload) === index)).toEqual(
      Array.from({ length: 15 }, (_, n) => n),
    )
    for (const each of outboxes) await each.close()
    expect(await numberOf("outbox.events where status <> 'published'")).toBe(0)
    expect(await locks()).toBe(0)
  }, 60_000)
})

function payloadsOf(broker: MemoryBroker, key: string): unknown[] {
  return broker.deliveries.filter((delivery) => delivery.key === key).map(json)
}
