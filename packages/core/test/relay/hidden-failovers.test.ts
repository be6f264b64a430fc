import { startPostgres, startProxy, startStandby } from '@inorder/harness'
import pg from 'pg'
import { expect, it } from 'vitest'
import { fromPg } from '../../src/clients/from-pg.ts'
import type { SqlConnection } from '../../src/contract/sql-client.ts'
import { relayStand } from '../support/relay-stand.ts'

it('a relay behind a pooler that moves to another server unseen finds what is committed on the new server', async () => {
  await using primary = await startPostgres()
  await using wal = await startProxy(primary.port)
  const url = await primary.createDatabase('shop')
  const onPromoted: SqlConnection[] = []
  const place: { promoted?: pg.Pool } = {}
  await using stand = await relayStand(
    undefined,
    {},
    (client) => ({
      ...client,
      async connect() {
        const connection = await client.connect()
        let now: SqlConnection | undefined
        return {
          ...connection,
          // What a pooler in transaction mode does: the session stays, and its statements go to another server.
          async run(statement) {
            if (place.promoted !== undefined && now === undefined) {
              now = await fromPg(place.promoted).connect()
              onPromoted.push(now)
            }
            return (now ?? connection).run(statement)
          },
        }
      },
    }),
    url,
  )
  await using standby = await startStandby(primary, { via: wal.port })
  const pool = new pg.Pool({ connectionString: standby.url('shop'), max: 10 })
  pool.on('error', () => undefined)
  await using relay = stand.relay({ sweepIntervalMs: 3_600_000, leaseMs: 60_000 })
  await relay.start()
  await stand.enqueue({ payload: 'before' })
  await stand.deliveries(1)
  await relay.drain()
  const replayed = "select 1 from outbox.events where status = 'published'"
  await expect.poll(async () => (await pool.query(replayed)).rowCount, { timeout: 10_000 }).toBe(1)

  // What the standby never hears of: transaction ids that it is going to use again.
  wal.refuse(true)
  wal.reset()
  for (let number = 0; number < 50; number++) await stand.pool.query('select pg_current_xact_id()')
  const found = (from: number): Promise<unknown> =>
    stand.signal((signal) => signal.kind === 'found' && stand.signals.indexOf(signal) >= from)
  await found(stand.signals.length)
  await found(stand.signals.length)
  await standby.promote()
  await pool.query("insert into outbox.events (topic, key, payload) values ('orders', 'k', 'after')")
  place.promoted = pool
  const moved = stand.signals.length
  await found(moved)
  const idle = stand.signals.length
  await stand.signal((signal) => signal.kind === 'idle' && stand.signals.indexOf(signal) >= idle)
  expect(stand.delivered).toEqual(['before', 'after'])
  await stand.outbox.close()
  await Promise.all(onPromoted.map((connection) => connection.close()))
  await pool.end()
}, 60_000)
