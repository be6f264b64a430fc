import { freshDatabase, startProxy } from '@inorder/harness'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { fromPg } from '../../src/clients/from-pg.ts'
import { createOutbox } from '../../src/outbox.ts'
import { type RelayStand, relayStand } from '../support/relay-stand.ts'
import { type WatchedSessions, watchSessions } from '../support/watched-sessions.ts'

/** Commits an event as another process does: no relay of this one is woken. */
async function enqueueElsewhere(stand: RelayStand, payload: string): Promise<void> {
  await stand.pool.query("insert into outbox.events (topic, key, payload) values ('orders', 'k', $1)", [
    Buffer.from(payload),
  ])
}

function finds({ signals }: RelayStand): number {
  return signals.filter(({ kind }) => kind === 'found').length
}

describe('a listener that hears nothing any more although its session works', () => {
  it('costs no event more than the poll interval: the next find after the commit brings it', async () => {
    await using stand = await relayStand(undefined, {}, (client) => ({
      ...client,
      async connect() {
        const connection = await client.connect()
        return { ...connection, onNotification: () => undefined }
      },
    }))
    await using relay = stand.relay()
    await relay.start()
    await stand.signal(({ kind }) => kind === 'idle')
    for (let n = 1; n <= 4; n++) {
      // From the slowest pace on.
      const idle = finds(stand)
      await stand.signal(() => finds(stand) > idle + 62)
      await enqueueElsewhere(stand, String(n))
      const [committed, at] = [finds(stand), performance.now()]
      await stand.deliveries(n)
      // One may have been on its way while the commit came.
      expect(finds(stand) - committed).toBeLessThanOrEqual(2)
      expect(performance.now() - at).toBeLessThan(2000)
    }
  }, 120_000)
})

describe('a listener whose connection', () => {
  /** A relay behind a proxy, that is awake only when it is told to be. */
  async function behindProxy(
    work: (scene: {
      readonly stand: RelayStand
      readonly sessions: WatchedSessions
      readonly strand: () => void
      /** How many notifications reached the relay. */
      readonly heard: () => number
    }) => Promise<void>,
  ): Promise<void> {
    const url = new URL(await freshDatabase())
    await using proxy = await startProxy(Number(url.port))
    const direct = url.href
    url.port = String(proxy.port)
    const pool = new pg.Pool({ connectionString: url.href, max: 10 })
    pool.on('error', () => undefined)
    let heard = 0
    const { watched: sessions, ...client } = watchSessions(fromPg(pool))
    await using stand = await relayStand(
      undefined,
      {},
      (given) => ({
        ...given,
        async connect() {
          const connection = await client.connect()
          return {
            ...connection,
            onNotification(listener) {
              connection.onNotification?.((channel) => {
                heard += 1
                listener(channel)
              })
            },
          }
        },
      }),
      direct,
    )
    await work({ stand, sessions, strand: () => proxy.strand(), heard: () => heard })
    await stand.outbox.close()
    await pool.end()
  }

  it(
    'was forgotten by the network is replaced after the statement timeout; nothing is lost and the new one hears',
    () =>
      behindProxy(async ({ stand, sessions, strand, heard }) => {
        await using other = createOutbox({ client: fromPg(stand.pool) })
        await using relay = stand.relay({ statementTimeoutMs: 2000, leaseMs: 4000 })
        await relay.start()
        await stand.signal(({ kind }) => kind === 'idle')
        const [listens, backend] = [sessions.sent('listen'), sessions.backend('find')]
        strand()
        await enqueueElsewhere(stand, '1')
        expect(await stand.deliveries(1)).toEqual(['1'])
        await stand.signal(() => sessions.backend('find') !== backend && sessions.sent('listen') > listens)
        expect(stand.signals).toContainEqual(
          expect.objectContaining({
            kind: 'database',
            use: 'find',
            ok: false,
            cause: expect.objectContaining({ code: 'DATABASE_UNREACHABLE' }) as unknown,
          }),
        )
        await stand.signal((signal) => signal.kind === 'database' && signal.use === 'find' && signal.ok)
        const before = heard()
        other.wake()
        await expect.poll(heard, { timeout: 10_000 }).toBeGreaterThan(before)
      }),
    60_000,
  )

  it(
    'is ended five times listens again each time',
    () =>
      behindProxy(async ({ stand, sessions, heard }) => {
        await using other = createOutbox({ client: fromPg(stand.pool) })
        await using relay = stand.relay()
        await relay.start()
        await stand.signal(({ kind }) => kind === 'idle')
        for (let n = 1; n <= 5; n++) {
          const [listens, backend] = [sessions.sent('listen'), sessions.backend('find')]
          await stand.pool.query('select pg_terminate_backend($1)', [backend])
          await enqueueElsewhere(stand, String(n))
          await stand.deliveries(n)
          expect(sessions.sent('listen')).toBe(listens + 2)
          const before = heard()
          other.wake()
          await expect.poll(heard, { timeout: 10_000 }).toBe(before + 1)
        }
        expect(stand.delivered).toEqual(['1', '2', '3', '4', '5'])
      }),
    60_000,
  )
})
