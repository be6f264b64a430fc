import { type PostgresServer, startPostgres } from '@inorder/harness'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { aroundStatements, purposeOf } from '../support/around-statements.ts'
import { type RelayStand, relayStand } from '../support/relay-stand.ts'
import { type WatchedSessions, watchSessions } from '../support/watched-sessions.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.stop())

async function standOn(url: string): Promise<RelayStand & { readonly sessions: WatchedSessions }> {
  let sessions: WatchedSessions | undefined
  const stand = await relayStand(
    undefined,
    {},
    (client) => {
      const { watched, ...rest } = watchSessions(client)
      sessions = watched
      return rest
    },
    url,
  )
  if (sessions === undefined) throw new Error('the client was not watched')
  return { ...stand, sessions, [Symbol.asyncDispose]: () => stand[Symbol.asyncDispose]() }
}

/** Resolves when it was said of both that they are broken, or that they work again. */
async function said(stand: RelayStand, ok: boolean): Promise<void> {
  for (const use of ['find', 'ownership'])
    await stand.signal((signal) => signal.kind === 'database' && signal.use === use && signal.ok === ok)
}

describe('a relay whose database is away', () => {
  it('keeps trying, is degraded and alive meanwhile, and delivers within 10 s of its return at its usual pace', async () => {
    await using stand = await standOn(await server.createDatabase())
    const { sessions } = stand
    await using relay = stand.relay()
    await relay.start()
    await stand.enqueue({ payload: 'before' })
    await stand.deliveries(1)
    await expect.poll(() => stand.states()).toEqual({ published: 1 })

    await server.kill()
    await said(stand, false)
    // By then it waits as long between two tries as it ever will: an outage of hours looks no different.
    await expect.poll(() => sessions.refused, { timeout: 25_000 }).toBeGreaterThanOrEqual(16)
    expect(relay.health()).toMatchObject({ state: 'running', live: true, database: { ok: false } })
    const told = stand.signals.flatMap((signal) => (signal.kind === 'database' ? [signal.use] : []))
    expect(told.sort()).toEqual(['find', 'ownership'])

    await server.restart()
    const from = performance.now()
    await stand.enqueue({ payload: 'after' })
    await stand.deliveries(2)
    expect(performance.now() - from).toBeLessThan(10_000)
    await stand.signal(() => relay.health().database.ok)
    sessions.forget()
    for (let n = 3; n < 10; n++) {
      await stand.enqueue({ payload: String(n) })
      await stand.deliveries(n)
    }
    for (const purpose of ['find', 'heartbeat', 'acknowledge', 'listen'])
      expect(sessions.atOnce(purpose)).toBeLessThanOrEqual(1)
    await relay.drain()
    expect(stand.delivered).toEqual(['before', 'after', ...Array.from({ length: 7 }, (_, n) => String(n + 3))])
  }, 60_000)

  it('has the latest cause in its health, and tells of the outage once', async () => {
    let failures = 0
    let failing = false
    await using stand = await relayStand(undefined, {}, (client) =>
      aroundStatements(client, (statement, run) => {
        if (!failing || purposeOf(statement) !== 'find') return run()
        failures += 1
        throw new Error(`failure ${String(failures)}`)
      }),
    )
    await using relay = stand.relay()
    await relay.start()
    failing = true
    const cause = (): string => (relay.health().database.cause as Error | undefined)?.message ?? ''
    await expect.poll(cause, { timeout: 10_000 }).toMatch(/^failure ([2-9]|\d\d)/)
    failing = false
    await stand.signal((signal) => signal.kind === 'database' && signal.ok)
    expect(stand.signals.filter(({ kind }) => kind === 'database')).toHaveLength(2)
    expect(relay.health().database).toEqual({ ok: true, cause: undefined })
  })

  it('that hangs is left after the statement timeout, and taken up again when it answers', async () => {
    await using stand = await standOn(await server.createDatabase())
    await using relay = stand.relay({ statementTimeoutMs: 2000, leaseMs: 3000 })
    await relay.start()
    await stand.enqueue({ payload: 'before' })
    await stand.deliveries(1)
    await expect.poll(() => stand.states()).toEqual({ published: 1 })
    server.pause()
    try {
      await said(stand, false)
      expect(relay.health()).toMatchObject({ state: 'running', live: true, database: { ok: false } })
    } finally {
      server.resume()
    }
    await said(stand, true)
    await stand.enqueue({ payload: 'after' })
    await stand.signal(() => stand.delivered.includes('after'))
    await relay.drain()
    expect(stand.delivered).toEqual(['before', 'after'])
  }, 60_000)
})
