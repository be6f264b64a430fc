import { describe, expect, it } from 'vitest'
import type { Failure } from '../../src/contract/publisher.ts'
import { relayStand } from '../support/relay-stand.ts'

const quick = { backoffBaseMs: 20, backoffCapMs: 40, breakerMinMs: 5, breakerMaxMs: 20 }
const hourMs = 3_600_000

describe('a broker that asks for a wait', () => {
  // An adapter takes the number from a header of the broker's, where anything may stand.
  it.each<[string, unknown]>([
    ['that is no number', Number.NaN],
    ['below none', -1],
    ['in words', 'soon'],
    ['as text', '5'],
    ['as a date', new Date(0)],
    ['of null', null],
  ])('%s is not obeyed: the event waits for its backoff', async (_, retryAfterMs) => {
    const failure = { kind: 'rejected', cause: new Error('busy'), retryAfterMs } as Failure
    await using stand = await relayStand((event) => (event.key === 'bad' ? failure : undefined))
    await stand.enqueue({ key: 'bad', payload: 'bad' }, { key: 'good', payload: 'good' })
    await stand.relay({ backoffBaseMs: hourMs }).drain()
    expect(stand.delivered).toEqual(['good'])
    const { rows } = await stand.pool.query<{ status: string; attempts: number; wait: number }>(
      "select status, attempts, extract(epoch from available_at - now())::float8 wait from outbox.events where key = 'bad'",
    )
    expect(rows).toMatchObject([{ status: 'pending', attempts: 1 }])
    expect(rows[0]?.wait).toBeGreaterThan(1700)
    expect(rows[0]?.wait).toBeLessThanOrEqual(3600)
  })

  it.each([Infinity, Number.MAX_SAFE_INTEGER])('of %d ms waits a day', async (retryAfterMs) => {
    await using stand = await relayStand(() => ({ kind: 'rejected', cause: new Error('busy'), retryAfterMs }))
    await stand.enqueue({ payload: 'x' })
    await stand.relay().drain()
    const { rows } = await stand.pool.query<{ hours: number }>(
      'select extract(epoch from available_at - now())::float8 / 3600 hours from outbox.events',
    )
    expect(rows[0]?.hours).toBeGreaterThan(23)
    expect(rows[0]?.hours).toBeLessThanOrEqual(24)
  })

  it.each<[string, unknown]>([
    ['that is no number', Number.NaN],
    ['in words', 'soon'],
    ['that lies behind', -hourMs],
  ])('%s, while it takes nothing, is tried again all the same', async (_, retryAfterMs) => {
    let tries = 0
    await using stand = await relayStand(() => {
      tries += 1
      return tries <= 3 ? ({ kind: 'unavailable', cause: new Error('busy'), retryAfterMs } as Failure) : undefined
    })
    await stand.enqueue({ payload: 'x' })
    await using relay = stand.relay(quick)
    await relay.start()
    expect(await stand.deliveries(1)).toEqual(['x'])
    await relay.drain()
    expect(await stand.states()).toEqual({ published: 1 })
  })
})

describe('an outage that names a destination which the event does not go to', () => {
  it('is taken for one of its own destination, leaves the others alone, and ends', async () => {
    let down = true
    let tries = 0
    await using stand = await relayStand((event) => {
      if (event.topic !== 'orders' || !down) return undefined
      tries += 1
      return { kind: 'unavailable', destination: 'another cluster', cause: new Error('no leader') }
    })
    await stand.enqueue({ payload: '1' }, { payload: '2' }, { topic: 'bills', payload: 'fine' })
    await using relay = stand.relay({ ...quick, maxAttempts: 1 })
    await relay.start()
    expect(await stand.signal(({ kind }) => kind === 'breaker')).toMatchObject({ destination: 'orders', open: true })
    expect(await stand.deliveries(1)).toEqual(['fine'])
    await stand.signal(() => tries >= 5)
    expect(relay.health().unavailable).toMatchObject([{ destination: 'orders' }])
    down = false
    expect(await stand.deliveries(3)).toEqual(['fine', '1', '2'])
    await relay.drain()
    expect(relay.health().unavailable).toEqual([])
    const { rows } = await stand.pool.query('select distinct status, attempts from outbox.events')
    expect(rows).toEqual([{ status: 'published', attempts: 0 }])
  })
})

describe('a run of total ordering over two destinations', () => {
  const total = (topic: string, payload: string): { topic: string; payload: string; ordering: 'total' } => ({
    topic,
    payload,
    ordering: 'total',
  })

  it('opens the breaker of the one that is down, and the keys of the other go on', async () => {
    await using stand = await relayStand((event) =>
      event.topic === 'down' ? { kind: 'unavailable', destination: 'down', cause: new Error('no leader') } : undefined,
    )
    await stand.enqueue(total('up', 'a1'), total('down', 'b1'), total('up', 'a2'))
    await using relay = stand.relay({ ...quick, breakerMinMs: 60_000, breakerMaxMs: 60_000 })
    await relay.start()
    expect(await stand.signal(({ kind }) => kind === 'breaker')).toMatchObject({ destination: 'down', open: true })
    await stand.enqueue({ topic: 'up', key: 'k', payload: 'k1' })
    expect(await stand.deliveries(2)).toEqual(['a1', 'k1'])
    expect(relay.health().unavailable).toMatchObject([{ destination: 'down' }])
  })

  it('closes the breaker of one that answers again, although the run stops at its neighbour', async () => {
    let bothDown = true
    await using stand = await relayStand(({ topic }) =>
      topic === 'down' || bothDown
        ? { kind: 'unavailable', destination: topic, cause: new Error('no leader') }
        : undefined,
    )
    await stand.enqueue(total('up', 'a1'), total('down', 'b1'))
    await using relay = stand.relay(quick)
    await relay.start()
    await stand.signal((signal) => signal.kind === 'breaker' && signal.destination === 'up' && signal.open)
    bothDown = false
    await stand.signal((signal) => signal.kind === 'breaker' && signal.destination === 'down' && signal.open)
    await stand.enqueue({ topic: 'up', key: 'k', payload: 'k1' })
    expect(await stand.deliveries(2)).toEqual(['a1', 'k1'])
    expect(relay.health().unavailable).toMatchObject([{ destination: 'down' }])
  })

  it('charges an answer about the second one to nobody else: the first stays as it is', async () => {
    await using stand = await relayStand(({ topic }, tries) =>
      topic === 'second' && tries === 1 ? { kind: 'rejected', cause: new Error('no') } : undefined,
    )
    await stand.enqueue(total('first', '1'), total('second', '2'), total('first', '3'))
    await using relay = stand.relay(quick)
    await relay.start()
    expect(await stand.deliveries(3)).toEqual(['1', '2', '3'])
    await relay.drain()
    const { rows } = await stand.pool.query<{ attempts: number }>('select attempts from outbox.events order by id')
    expect(rows.map(({ attempts }) => attempts)).toEqual([0, 1, 0])
    expect(stand.signals.filter(({ kind }) => kind === 'breaker')).toEqual([])
  })
})
