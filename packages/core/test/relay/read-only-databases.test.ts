import { type PostgresServer, startPostgres, startProxy, startStandby } from '@inorder/harness'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fromPg } from '../../src/clients/from-pg.ts'
import { createOutbox } from '../../src/outbox.ts'
import { gate } from '../support/gate.ts'
import { relayStand } from '../support/relay-stand.ts'
import { testPublisher } from '../support/test-publisher.ts'
import { type WatchedSessions, watchSessions } from '../support/watched-sessions.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.stop())

const publisher = testPublisher((run) => ({ acknowledged: run.length }))

async function startOn(url: string): Promise<void> {
  const pool = new pg.Pool({ connectionString: url, max: 6 })
  const outbox = createOutbox({ client: fromPg(pool) })
  try {
    await outbox.relay({ publisher }).start()
  } finally {
    await outbox.close()
    await pool.end()
  }
}

describe('a session that becomes read-only under a running relay', () => {
  it('is thrown away, nothing is published once the lease is over, and all goes on within 5 s of the end', async () => {
    const client: { watched?: WatchedSessions } = {}
    const [entered, release] = [gate(), gate()]
    await using stand = await relayStand(
      async (event) => {
        if (event.headers['slow'] !== 'true') return undefined
        entered.open()
        await release.opened
        return undefined
      },
      {},
      (given) => {
        const { watched, ...rest } = watchSessions(given)
        client.watched = watched
        return rest
      },
      await server.createDatabase(),
    )
    const { pool } = stand
    await using relay = stand.relay({ leaseMs: 900 })
    await relay.start()
    await stand.enqueue({ payload: '1' })
    await stand.deliveries(1)
    await expect.poll(() => stand.states()).toEqual({ published: 1 })
    const before = (['settle', 'ownership'] as const).map((use) => client.watched?.backend(use))
    await stand.enqueue({ key: 'slow', payload: 'slow', headers: { slow: true } })
    await entered.opened

    // Every session of the server has it at once, those that are open too.
    await pool.query('alter system set default_transaction_read_only = on')
    await pool.query('select pg_reload_conf()')
    expect(
      await stand.signal((signal) => signal.kind === 'database' && signal.use === 'ownership' && !signal.ok),
    ).toMatchObject({ cause: { code: '25006' } })
    release.open()
    await stand.deliveries(2)
    await stand.signal((signal) => signal.kind === 'database' && signal.use === 'settle' && !signal.ok)
    await expect.poll(() => relay.health().leaseHolds, { timeout: 10_000 }).toBe(false)
    expect(relay.health()).toMatchObject({ state: 'running', live: true, database: { ok: false } })
    const writer = await pool.connect()
    await writer.query('begin read write')
    await writer.query("insert into outbox.events (topic, key, payload) values ('orders', 'k', '2')")
    await writer.query('commit')
    const found = (): number => stand.signals.filter(({ kind }) => kind === 'found').length
    const seen = found()
    await stand.signal(() => found() > seen + 3)
    expect(stand.delivered).toEqual(['1', 'slow'])

    await writer.query('set default_transaction_read_only = off')
    await writer.query('alter system reset default_transaction_read_only')
    await writer.query('select pg_reload_conf()')
    writer.release()
    const from = performance.now()
    expect(await stand.deliveries(3)).toEqual(['1', 'slow', '2'])
    expect(performance.now() - from).toBeLessThan(5000)
    await expect.poll(() => stand.states(), { timeout: 5000 }).toEqual({ published: 3 })
    await expect.poll(() => relay.health().database.ok).toBe(true)
    const after = (['settle', 'ownership'] as const).map((use) => client.watched?.backend(use))
    expect(after.filter((pid) => pid === undefined || before.includes(pid))).toEqual([])
  }, 60_000)
})

describe('a relay', () => {
  it('does not start where its role or its database is read-only, and says so with the name of the database', async () => {
    await using stand = await relayStand(undefined, {}, undefined, await server.createDatabase())
    const url = new URL(stand.url)
    const database = url.pathname.slice(1)
    await stand.pool.query(`create role reader login superuser`)
    await stand.pool.query(`alter role reader in database ${database} set default_transaction_read_only = on`)
    url.username = 'reader'
    const refusal = (text: RegExp): object => ({
      code: 'DATABASE_UNREACHABLE',
      message: expect.stringMatching(text) as string,
    })
    await expect(startOn(url.href)).rejects.toMatchObject(
      refusal(new RegExp(`"${database}" at 127.0.0.1:${String(server.port)} is read-only`)),
    )
    await expect(startOn(stand.url)).resolves.toBeUndefined()
    await stand.pool.query(`alter database ${database} set default_transaction_read_only = on`)
    await expect(startOn(stand.url)).rejects.toMatchObject(refusal(/is read-only/))
  })

  it('does not start on a replica, and says so with its address', async () => {
    await using primary = await startPostgres()
    await using stand = await relayStand(undefined, {}, undefined, await primary.createDatabase('shop'))
    await using standby = await startStandby(primary)
    await stand.enqueue({ payload: '1' })
    await expect(startOn(standby.url('shop'))).rejects.toMatchObject({
      code: 'DATABASE_UNREACHABLE',
      message: expect.stringContaining(`"shop" at 127.0.0.1:${String(standby.port)} is a replica`) as string,
    })
    expect(await stand.states()).toEqual({ pending: 1 })
  }, 60_000)

  it('whose connections lead to a replica for a while reads nothing there, and finds the primary again', async () => {
    await using primary = await startPostgres()
    await using wal = await startProxy(primary.port)
    await using address = await startProxy(primary.port)
    const pools: pg.Pool[] = []
    let connects = 0
    await using stand = await relayStand(
      undefined,
      {},
      (client) => {
        const moving = new pg.Pool({ connectionString: urlAt(address.port), max: 10 })
        moving.on('error', () => undefined)
        pools.push(moving)
        return {
          ...client,
          async connect() {
            const connection = await fromPg(moving).connect()
            connects += 1
            return connection
          },
        }
      },
      await primary.createDatabase('shop'),
    )
    await using standby = await startStandby(primary, { via: wal.port })
    await using relay = stand.relay({ leaseMs: 900 })
    await relay.start()
    await stand.enqueue({ key: 'a', payload: '1' }, { key: 'a', payload: Buffer.alloc(9000, 'x') })
    await stand.deliveries(2)
    await expect.poll(() => stand.states()).toEqual({ published: 2 })

    // The standby is cut off: whoever goes on reading there sees nothing new ever again.
    wal.refuse(true)
    wal.reset()
    address.retarget(standby.port)
    address.reset()
    for (const use of ['find', 'ownership'] as const)
      await stand.signal((signal) => signal.kind === 'database' && signal.use === use && !signal.ok)
    const seen = connects
    await expect.poll(() => connects, { timeout: 10_000 }).toBeGreaterThan(seen + 3)
    expect(relay.health()).toMatchObject({ state: 'running', live: true, database: { ok: false } })
    // New connections find the primary; those that were made meanwhile are left where they are.
    address.retarget(primary.port)
    await stand.enqueue({ key: 'a', payload: '2' }, { key: 'b', payload: Buffer.alloc(9000, 'y') })
    await stand.deliveries(4)
    await expect.poll(() => stand.states(), { timeout: 10_000 }).toEqual({ published: 4 })
    await stand.outbox.close()
    for (const pool of pools) await pool.end()

    function urlAt(port: number): string {
      return `postgres://postgres@127.0.0.1:${String(port)}/shop`
    }
  }, 60_000)
})
