import { startPostgres, startProxy, startStandby } from '@inorder/harness'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { type Around, aroundStatements, purposeOf } from '../../support/around-statements.ts'
import { insert } from '../../support/outbox-database.ts'
import { pause } from '../../support/pause.ts'
import { type RelayStand, relayStand } from '../../support/relay-stand.ts'

// A standby takes over that has not received the last transactions: what they wrote is gone, and their transaction ids
// and ids are given out again.

/** No slot is gained, no lease is renewed and nothing is swept by itself while a test runs. */
const still = { leaseMs: 600_000, sweepIntervalMs: 3_600_000 }

const database = 'shop'

interface FailoverStand extends AsyncDisposable {
  readonly stand: RelayStand
  /** The standby has received everything so far and receives nothing from now on. */
  cutOff(): Promise<void>
  /** The standby takes over; nobody else reaches it before `write` is done. */
  failOver(write: (writer: pg.Client) => Promise<void>): Promise<void>
}

async function failoverStand(around: Around = (_, run) => run()): Promise<FailoverStand> {
  /** Ended from the last to the first. */
  const parts: AsyncDisposable[] = []
  async function use<P extends AsyncDisposable>(starting: Promise<P>): Promise<P> {
    const part = await starting
    parts.unshift(part)
    return part
  }
  const primary = await use(startPostgres())
  const wal = await use(startProxy(primary.port))
  const address = await use(startProxy(primary.port))
  await primary.createDatabase(database)
  const standby = await use(startStandby(primary, { via: wal.port }))
  const url = new URL(primary.url(database))
  url.port = String(address.port)
  const stand = await use(relayStand(undefined, {}, (client) => aroundStatements(client, around), url.href))

  return {
    stand,
    async cutOff() {
      const [written] = await query(primary.url(), 'select pg_current_wal_lsn() as lsn')
      await expect
        .poll(() => query(standby.url(), 'select pg_last_wal_replay_lsn() >= $1 as has', [written?.['lsn']]), {
          timeout: 20_000,
        })
        .toEqual([{ has: true }])
      wal.refuse(true)
      wal.reset()
    },
    async failOver(write) {
      address.refuse(true)
      address.reset()
      await primary.kill()
      await standby.promote()
      await connected(standby.url(database), write)
      address.retarget(standby.port)
      address.refuse(false)
    },
    async [Symbol.asyncDispose]() {
      for (const part of parts) await part[Symbol.asyncDispose]()
    },
  }
}

async function connected<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

const query = (url: string, text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> =>
  connected(url, async (client) => (await client.query<Record<string, unknown>>(text, values)).rows)

/** As transactions do that roll back. A standby skips up to 32 ids by itself. */
const skipIds = (writer: pg.Client | pg.Pool, count: number): Promise<unknown> =>
  (writer as pg.Pool).query(
    `select nextval(pg_get_serial_sequence('outbox.events', 'id')) from generate_series(1, $1::int)`,
    [count],
  )

describe('a relay that is led to a standby which lacks the last transactions', () => {
  it('finds what is committed under transaction ids that were used before', async () => {
    await using scene = await failoverStand()
    const { stand } = scene
    await using relay = stand.relay(still)
    await relay.start()
    await stand.signal(({ kind }) => kind === 'idle')
    await scene.cutOff()
    for (let n = 1; n <= 20; n++) await stand.enqueue({ payload: String(n) })
    await stand.deliveries(20)
    await relay.drain()
    await scene.failOver(async (writer) => {
      await insert(writer, 'k', 'after')
    })
    await stand.signal(() => stand.delivered.includes('after'))
  }, 60_000)

  it('delivers in order what is inserted under ids that were used before', async () => {
    const naming = pause()
    let named = false
    await using scene = await failoverStand(async (statement, run) => {
      // The lane is settled, and this find would go on with it or free it.
      const names = purposeOf(statement) === 'find' && (statement.values[5] as string[]).length > 0
      if (names && !named) {
        named = true
        await naming.stop()
      }
      return run()
    })
    const { stand } = scene
    await using relay = stand.relay(still)
    await relay.start()
    await stand.signal(({ kind }) => kind === 'idle')
    await scene.cutOff()
    await skipIds(stand.pool, 100)
    await stand.enqueue({ payload: 'lost' })
    await naming.reached
    await scene.failOver(async (writer) => {
      const first = await insert(writer, 'k', 'first')
      await skipIds(writer, 200)
      const second = await insert(writer, 'k', 'second')
      const [lost] = stand.events
      expect([Number(first.id), Number(second.id)]).toEqual([
        expect.toSatisfy((id: number) => id < Number(lost?.id)),
        expect.toSatisfy((id: number) => id > Number(lost?.id)),
      ])
    })
    naming.goOn()
    expect(await stand.deliveries(3)).toEqual(['lost', 'first', 'second'])
  }, 60_000)
})
