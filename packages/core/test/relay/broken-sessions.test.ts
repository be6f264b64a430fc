import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { fromPg } from '../../src/clients/from-pg.ts'
import type { SqlConnector } from '../../src/contract/sql-client.ts'
import type { Relay } from '../../src/relay/relay.ts'
import { sql } from '../support/application.ts'
import { gate } from '../support/gate.ts'
import { type Answer, type RelayStand, relayStand } from '../support/relay-stand.ts'
import { type Use, type WatchedSessions, watchSessions } from '../support/watched-sessions.ts'

const uses: readonly Use[] = ['find', 'settle', 'ownership', 'load']

interface Scene {
  readonly stand: RelayStand
  readonly relay: Relay
  readonly sessions: WatchedSessions
  /** Ends server sessions as an administrator does. Resolves when they are gone. */
  readonly end: (...backends: (number | undefined)[]) => Promise<void>
}

/** A relay on a pool to which nobody listens: an error that nobody handles would end this process, and fail the run. */
async function withRelay(work: (scene: Scene) => Promise<void>, answer?: Answer): Promise<void> {
  const own: { client?: SqlConnector } = {}
  await using stand = await relayStand(answer, {}, (client) => ({
    ...client,
    connect: () => (own.client ?? client).connect(),
  }))
  const pool = new pg.Pool({ connectionString: stand.url, max: 10 })
  const { watched: sessions, ...watching } = watchSessions(fromPg(pool))
  own.client = watching
  const relay = stand.relay()
  await relay.start()
  // Brings each of its sessions into use.
  await stand.enqueue({ key: 'large', payload: Buffer.alloc(10_000, 'x') })
  await stand.deliveries(1)
  await stand.signal(({ kind }) => kind === 'settled')
  for (const use of uses) expect(sessions.backend(use)).toBeDefined()
  const end = async (...backends: (number | undefined)[]): Promise<void> => {
    await stand.pool.query('select pg_terminate_backend(pid) from unnest($1::int[]) pid', [backends])
    const left = async (): Promise<unknown> =>
      (await stand.pool.query('select from pg_stat_activity where pid = any($1)', [backends])).rowCount
    await expect.poll(left, { timeout: 10_000 }).toBe(0)
  }
  await work({ stand, relay, sessions, end })
  await stand.outbox.close()
  expect(pool.eventNames()).toEqual([])
  expect(pool.totalCount).toBe(0)
  await pool.end()
}

/** What the relay said about the database, in order. */
function troubles({ signals }: RelayStand): string[] {
  return signals.flatMap((signal) =>
    signal.kind === 'database' ? [`${signal.use} ${signal.ok ? 'ok' : 'broken'}`] : [],
  )
}

describe('the end of a server session', () => {
  it.each(uses)('that waits for its next statement (%s) ends nothing and costs no trouble', (use) =>
    withRelay(async ({ stand, relay, sessions, end }) => {
      const before = sessions.backend(use)
      await end(before)
      await stand.enqueue({ key: 'large', payload: Buffer.alloc(10_000, 'y') }, { payload: 'z' })
      await stand.deliveries(3)
      await stand.signal(() => sessions.backend(use) !== undefined && sessions.backend(use) !== before)
      await stand.signal(() => relay.health().database.ok)
      expect(troubles(stand).filter((trouble) => trouble.endsWith('broken')).length).toBeLessThanOrEqual(1)
    }),
  )

  it.each<[Use, string]>([
    ['find', 'events'],
    ['settle', 'events'],
    ['ownership', 'relays'],
  ])('in the middle of a statement (%s) is said once, and once that it is over', (use, table) => {
    const [entered, release] = [gate(), gate()]
    return withRelay(
      async ({ stand, relay, sessions, end }) => {
        await stand.enqueue({ key: 'slow', payload: 'slow' })
        await entered.opened
        const locker = await stand.pool.connect()
        await locker.query('begin')
        await locker.query(`lock table outbox.${table} in access exclusive mode`)
        release.open()
        const waiting = async (): Promise<number[]> => {
          const { rows } = await stand.pool.query<{ pid: number }>(
            "select pid from pg_stat_activity where wait_event_type = 'Lock'",
          )
          return rows.map(({ pid }) => pid)
        }
        await expect.poll(waiting, { timeout: 20_000 }).toContain(sessions.backend(use))
        await end(sessions.backend(use))
        await stand.signal((signal) => signal.kind === 'database' && signal.use === use && !signal.ok)
        expect(relay.health()).toMatchObject({ state: 'running', live: true, database: { ok: false } })
        await locker.query('commit')
        locker.release()
        await stand.signal((signal) => signal.kind === 'database' && signal.use === use && signal.ok)
        await stand.enqueue({ key: 'slow', payload: 'behind' })
        await stand.signal(() => stand.delivered.includes('behind'))
        await relay.drain()
        expect(stand.delivered.slice(1)).toEqual(['slow', 'behind'])
        expect(troubles(stand).filter((trouble) => trouble.startsWith(use))).toEqual([`${use} broken`, `${use} ok`])
      },
      async ({ key }) => {
        if (key !== 'slow') return undefined
        entered.open()
        await release.opened
        return undefined
      },
    )
  })

  it('happens to a client of outbox.transaction: it goes back to the pool with the listeners that it had', async () => {
    await using stand = await relayStand()
    const pool = new pg.Pool({ connectionString: stand.url, max: 1 })
    const listeners = async (): Promise<unknown> => {
      const client = await pool.connect()
      const counts = client.eventNames().map((name) => [name, client.listenerCount(name)])
      client.release()
      return counts
    }
    const before = await listeners()
    for (let round = 0; round < 12; round++) {
      const done = stand.outbox.transaction(pool, async (tx) => {
        await stand.outbox.enqueue(tx, { topic: 'orders', key: 'k', payload: round })
        if (round % 3 === 1) throw new Error('rolled back')
        if (round % 3 === 2) await tx.query(sql('select pg_terminate_backend(pg_backend_pid())'))
      })
      await (round % 3 === 0 ? done : expect(done).rejects.toThrow())
    }
    expect(await listeners()).toEqual(before)
    expect(pool.eventNames()).toEqual([])
    await pool.end()
    expect(await stand.states()).toEqual({ pending: 4 })
  })
})

describe('a relay whose server sessions are ended twenty times, in every combination,', () => {
  it(
    'delivers within 10 s each time, and finds, settles and renews one at a time at its usual pace afterwards',
    () =>
      withRelay(async ({ stand, relay, sessions, end }) => {
        const combinations = Array.from({ length: 20 }, (_, round) =>
          uses.filter((_, bit) => ((round % 15) + 1) & (1 << bit)),
        )
        for (const [round, combination] of combinations.entries()) {
          const [behind, before] = [`${String(round)}b`, `${String(round)}a`]
          await stand.enqueue({ key: String(round % 3), payload: before })
          await end(...combination.map((use) => sessions.backend(use)))
          await stand.enqueue(
            { key: String(round % 3), payload: behind },
            { key: 'large', payload: Buffer.alloc(9000, behind) },
          )
          const from = performance.now()
          await stand.signal(
            () =>
              stand.delivered.includes(behind) &&
              stand.delivered.some((payload) => payload.startsWith(behind + behind)),
          )
          expect(performance.now() - from).toBeLessThan(10_000)
        }
        await stand.signal(() => relay.health().database.ok && relay.health().slots === 256)
        const first = stand.delivered.filter(
          (payload, index) => stand.delivered.indexOf(payload) === index && payload.length < 5,
        )
        for (const key of [0, 1, 2]) {
          const expected = combinations.flatMap((_, round) =>
            round % 3 === key ? [`${String(round)}a`, `${String(round)}b`] : [],
          )
          expect(first.filter((payload) => Number.parseInt(payload, 10) % 3 === key && payload !== 'x')).toEqual(
            expected,
          )
        }
        await expect.poll(() => stand.states(), { timeout: 10_000 }).toEqual({ published: 61 })

        // Slow again, and then 20 finds long.
        const finds = (): number => sessions.sent('find')
        const pace: number[] = []
        for (let at = performance.now(); pace.length < 2 || (pace.at(-1) ?? 0) < 190; ) {
          const seen = finds()
          await stand.signal(() => finds() > seen)
          pace.push(performance.now() - at)
          at = performance.now()
        }
        sessions.forget()
        const [seen, beats, at] = [finds(), sessions.sent('heartbeat'), performance.now()]
        await stand.signal(() => finds() >= seen + 20)
        const seconds = (performance.now() - at) / 1000
        expect((finds() - seen) / seconds).toBeLessThan(6)
        expect((sessions.sent('heartbeat') - beats) / seconds).toBeLessThan(1)
        for (const purpose of ['find', 'heartbeat', 'acknowledge'])
          expect(sessions.atOnce(purpose)).toBeLessThanOrEqual(1)
        expect(sessions.backends()).toHaveLength(5)
      }),
    120_000,
  )
})
