import { describe, expect, it } from 'vitest'
import type { SqlConnection } from '../../src/contract/sql-client.ts'
import { type Around, aroundStatements, purposeOf } from '../support/around-statements.ts'
import { type Answer, type RelayStand, relayStand } from '../support/relay-stand.ts'

const quick = { backoffBaseMs: 20, backoffCapMs: 40 }
const rejected = { kind: 'rejected', cause: new Error('the broker says no') } as const

function standWith(around: Around, answer?: Answer): Promise<RelayStand> {
  return relayStand(answer, {}, (client) => aroundStatements(client, around))
}

/** Lets so many statements of one purpose reach the server, and loses their answers with the connection. */
function losingAnswers(purpose: string, times: number): Around {
  let lost = 0
  return async (statement, run, connection) => {
    const answer = await run()
    if (purposeOf(statement) !== purpose || lost >= times) return answer
    lost += 1
    await connection.close()
    throw new Error('the connection broke before the answer came')
  }
}

describe('an outcome that was written, and the answer got lost,', () => {
  it.each(['continue', 'hold'] as const)(
    'tells exactly once that the event is given up, with onExhausted %s',
    async (onExhausted) => {
      const paged: unknown[] = []
      await using stand = await standWith(losingAnswers('settle', 2), () => rejected)
      await stand.enqueue({ payload: 'poison' })
      await using relay = stand.relay({
        ...quick,
        maxAttempts: 1,
        onExhausted,
        onFailed: ({ key, attempts }, cause) => void paged.push([key, attempts, cause]),
      })
      await relay.start()
      await stand.signal(({ kind }) => kind === 'failed')
      await relay.drain()
      expect(paged).toEqual([['k', 1, rejected.cause]])
      expect(stand.signals.filter(({ kind }) => kind === 'failed')).toHaveLength(1)
      expect(relay.counts()).toEqual({ published: 0, counted: 1, failed: 1 })
      expect((await stand.pool.query('select 1 from outbox.failures')).rowCount).toBe(1)
    },
  )

  it('counts a failure once', async () => {
    await using stand = await standWith(losingAnswers('settle', 2), (_, tries) => (tries === 1 ? rejected : undefined))
    await stand.enqueue({ payload: 'x' })
    await using relay = stand.relay(quick)
    await relay.start()
    await stand.deliveries(1)
    await relay.drain()
    const { rows } = await stand.pool.query('select status, attempts from outbox.events')
    expect(rows).toEqual([{ status: 'published', attempts: 1 }])
    expect((await stand.pool.query('select 1 from outbox.failures')).rowCount).toBe(1)
  })

  it('publishes nothing again, and the key goes on behind it', async () => {
    await using stand = await standWith(losingAnswers('acknowledge', 3))
    await using relay = stand.relay()
    await relay.start()
    for (const payload of ['1', '2', '3', '4', '5']) await stand.enqueue({ payload })
    await stand.deliveries(5)
    await relay.drain()
    expect(stand.delivered).toEqual(['1', '2', '3', '4', '5'])
    expect(await stand.states()).toEqual({ published: 5 })
  })
})

describe('a registration', () => {
  /** Ends the session of a relay that registers once the statement with these words has been answered. */
  function endingSessionAfter(words: string): {
    readonly around: Around
    readonly arm: (stand: RelayStand) => void
  } {
    let armed: RelayStand | undefined
    return {
      arm: (stand) => void (armed = stand),
      async around({ text }, run, connection) {
        if (armed === undefined || !text.includes(words)) return run()
        const { pool } = armed
        armed = undefined
        const { rows } = await connection.run({ text: 'select pg_backend_pid()', values: [] })
        const answer = await run()
        await pool.query('select pg_terminate_backend($1)', [rows[0]?.[0]])
        await connection.ended
        if (words === 'commit') throw new Error('the answer to the commit was lost')
        return answer
      },
    }
  }

  it.each([
    ['begin isolation level', 'begun'],
    ['pg_advisory_xact_lock', 'got its lock'],
    ['insert into "outbox".relays', 'written its row'],
    ['insert into "outbox".slots', 'written everything'],
    ['commit', 'committed, before the answer came'],
  ])(
    'whose session is lost once it has %s leaves no relay that believes it is registered, and the next start is whole',
    async (words) => {
      const { around, arm } = endingSessionAfter(words)
      await using stand = await standWith(around)
      arm(stand)
      await stand.enqueue({ payload: 'x' })
      const relay = stand.relay()
      await expect(relay.start()).rejects.toThrow()
      expect(relay.health().state).toBe('stopped')
      expect((await stand.pool.query('select 1 from outbox.relays')).rowCount).toBe(0)
      await relay.start()
      expect(await stand.deliveries(1)).toEqual(['x'])
      await relay.stop()
    },
  )
})

describe('a LISTEN that gets no answer', () => {
  it('is given up with its connection, and the relay publishes over another one', async () => {
    const hung: SqlConnection[] = []
    await using stand = await standWith((statement, run, connection) => {
      if (purposeOf(statement) !== 'listen' || hung.length === 2) return run()
      hung.push(connection)
      return new Promise(() => undefined)
    })
    await stand.enqueue({ payload: 'x' })
    await using relay = stand.relay({ statementTimeoutMs: 500 })
    await relay.start()
    expect(await stand.deliveries(1)).toEqual(['x'])
    expect(hung).toHaveLength(2)
    for (const connection of hung) await connection.ended
    expect(stand.signals).toContainEqual(expect.objectContaining({ kind: 'database', use: 'find', ok: false }))
    await stand.signal((signal) => signal.kind === 'database' && signal.use === 'find' && signal.ok)
    expect(relay.health().database.ok).toBe(true)
  })

  it('does not keep a relay from being stopped', async () => {
    let asked: () => void = () => undefined
    const listening = new Promise<void>((resolve) => (asked = resolve))
    await using stand = await standWith((statement, run) => {
      if (purposeOf(statement) !== 'listen') return run()
      asked()
      return new Promise(() => undefined)
    })
    const relay = stand.relay({ statementTimeoutMs: 500 })
    await relay.start()
    await listening
    await relay.stop()
    expect(relay.health().state).toBe('stopped')
  })
})

describe('a find that gets no answer', () => {
  it('stops its relay until the statement timeout: the lease is renewed meanwhile, so nobody takes over, and nothing is lost', async () => {
    const statementTimeoutMs = 4000
    let armed = false
    let hung: SqlConnection | undefined
    await using stand = await standWith((statement, run, connection) => {
      if (!armed || purposeOf(statement) !== 'find') return run()
      armed = false
      hung = connection
      return new Promise(() => undefined)
    })
    const options = { statementTimeoutMs, leaseMs: 900, sweepIntervalMs: 3_600_000 }
    await using one = stand.relay(options)
    await using two = stand.relay(options)
    await Promise.all([one.start(), two.start()])
    await stand.signal(() => one.health().slots === 128 && two.health().slots === 128)
    armed = true
    await expect.poll(() => hung).toBeDefined()
    await stand.enqueue(...Array.from({ length: 40 }, (_, n) => ({ key: String(n), payload: String(n) })))
    const stalled = (): number => Math.max(...[one, two].map((relay) => relay.health().sinceLastFindMs ?? 0))
    // Three leases later.
    await expect.poll(stalled, { timeout: 10_000 }).toBeGreaterThan(2700)
    for (const relay of [one, two])
      expect(relay.health()).toMatchObject({ live: true, leaseHolds: true, slots: 128, database: { ok: true } })
    expect(stand.delivered.length).toBeGreaterThan(0)
    expect(stand.delivered.length).toBeLessThan(40)
    await stand.deliveries(40)
    expect(stand.signals).toContainEqual(expect.objectContaining({ kind: 'database', use: 'find', ok: false }))
    await Promise.all([one.drain(), two.drain(), hung?.ended])
    expect(new Set(stand.delivered).size).toBe(40)
    expect(stand.delivered).toHaveLength(40)
    expect(stand.signals.filter(({ kind }) => kind === 'lease-lost')).toEqual([])
  })
})

describe('a payload that cannot be loaded', () => {
  const large = Buffer.alloc(10_000, 'L').toString()

  it('is loaded later: its key goes on then, the others meanwhile, and nothing is lost or counted', async () => {
    let failures = 0
    let seenBehind: readonly string[] = []
    await using stand = await standWith(
      async (statement, run, connection) => {
        if (purposeOf(statement) !== 'load' || failures === 2) return run()
        failures += 1
        await connection.close()
        throw new Error('the connection broke')
      },
      (event) => {
        if (event.key === 'big') seenBehind = [...stand.delivered]
        return undefined
      },
    )
    await stand.enqueue(
      { key: 'big', payload: 'before' },
      { key: 'big', payload: large },
      { key: 'big', payload: 'behind' },
    )
    await using relay = stand.relay({ maxAttempts: 1 })
    await relay.start()
    await stand.signal((signal) => signal.kind === 'database' && signal.use === 'load' && !signal.ok)
    expect(relay.health().database.ok).toBe(false)
    await stand.enqueue({ key: 'small', payload: 'small' })
    expect((await stand.deliveries(4)).filter((payload) => payload !== 'small')).toEqual(['before', large, 'behind'])
    expect(seenBehind).toContain('small')
    expect(failures).toBe(2)
    await relay.drain()
    expect(relay.health().database.ok).toBe(true)
    const { rows } = await stand.pool.query('select distinct status, attempts from outbox.events')
    expect(rows).toEqual([{ status: 'published', attempts: 0 }])
    expect(relay.counts()).toEqual({ published: 4, counted: 0, failed: 0 })
  })

  it('because the row is gone ends the run, and the key goes on behind it', async () => {
    let deleted = false
    await using stand = await standWith(async (statement, run) => {
      if (purposeOf(statement) === 'load' && !deleted) {
        deleted = true
        await stand.pool.query('delete from outbox.events where octet_length(payload) > 4096')
      }
      return run()
    })
    await stand.enqueue({ payload: 'before' }, { payload: large }, { payload: 'behind' })
    await stand.relay().drain()
    expect(stand.delivered).toEqual(['before', 'behind'])
    expect(await stand.states()).toEqual({ published: 2 })
  })
})
