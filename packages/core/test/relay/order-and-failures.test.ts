import { describe, expect, it } from 'vitest'
import type { Failure } from '../../src/contract/publisher.ts'
import { relayStand } from '../support/relay-stand.ts'

const rejected: Failure = { kind: 'rejected', cause: new Error('the broker says no') }
const quick = { backoffBaseMs: 20, backoffCapMs: 40 }

describe('order', () => {
  it('keeps the events of a key behind a failed head until it is published', async () => {
    await using stand = await relayStand((event, tries) =>
      event.headers['fail'] === 'twice' && tries <= 2 ? rejected : undefined,
    )
    await stand.enqueue(
      { payload: 'created', headers: { fail: 'twice' } },
      { payload: 'paid' },
      { payload: 'cancelled' },
    )
    const slow = { backoffBaseMs: 3_600_000 }
    await stand.relay(slow).drain()
    expect(stand.delivered).toEqual([])
    await stand.pool.query('update outbox.events set available_at = now() where available_at is not null')
    await stand.relay(slow).drain()
    expect(stand.delivered).toEqual([])
    await stand.pool.query('update outbox.events set available_at = now() where available_at is not null')
    await stand.relay(slow).drain()
    expect(await stand.deliveries(3)).toEqual(['created', 'paid', 'cancelled'])
  })

  it('lets other keys go on while one waits for its retry', async () => {
    await using stand = await relayStand((event) => (event.key === 'bad' ? rejected : undefined))
    await stand.enqueue(
      { key: 'bad', payload: 'poison' },
      { key: 'bad', payload: 'behind' },
      { key: 'good', payload: '1' },
      { key: 'good', payload: '2' },
    )
    await stand.relay().drain()
    expect(stand.delivered).toEqual(['1', '2'])
  })

  it('lets neither a scheduled nor a failed event hold its key back', async () => {
    await using stand = await relayStand((event) =>
      event.headers['poison'] === 'true' ? { kind: 'permanent', cause: 'never' } : undefined,
    )
    await stand.enqueue(
      { payload: 'in an hour', delayMs: 3_600_000 },
      { payload: 'poison', headers: { poison: true } },
      { payload: 'now' },
    )
    await stand.relay().drain()
    expect(stand.delivered).toEqual(['now'])
    expect(await stand.states()).toEqual({ scheduled: 1, failed: 1, published: 1 })
  })

  it('publishes everything of total ordering in one sequence, whatever the topics', async () => {
    await using stand = await relayStand()
    const inputs = Array.from({ length: 30 }, (_, n) => ({
      topic: `t${String(n % 3)}`,
      key: `k${String(n % 7)}`,
      ordering: 'total' as const,
      payload: String(n),
    }))
    await stand.enqueue(...inputs)
    await stand.relay().drain()
    expect(stand.delivered).toEqual(inputs.map(({ payload }) => payload))
  })

  it('hands over one event at a time with maxRun 1', async () => {
    const lengths: number[] = []
    await using stand = await relayStand()
    await stand.enqueue(...Array.from({ length: 5 }, (_, n) => ({ payload: String(n) })))
    await stand
      .relay({
        maxRun: 1,
        onSignal(signal) {
          if (signal.kind === 'published') lengths.push(signal.events.length)
        },
      })
      .drain()
    expect(lengths).toEqual([1, 1, 1, 1, 1])
    expect(stand.delivered).toEqual(['0', '1', '2', '3', '4'])
  })

  it('goes on with the first event that was not acknowledged when a run stops in the middle', async () => {
    await using stand = await relayStand((event, tries) =>
      event.headers['fail'] === 'once' && tries === 1 ? rejected : undefined,
    )
    await stand.enqueue({ payload: 'a' }, { payload: 'b', headers: { fail: 'once' } }, { payload: 'c' })
    await using relay = stand.relay(quick)
    await relay.start()
    expect(await stand.deliveries(3)).toEqual(['a', 'b', 'c'])
    const { rows } = await stand.pool.query<{ attempts: number }>('select attempts from outbox.events order by id')
    expect(rows.map(({ attempts }) => attempts)).toEqual([0, 1, 0])
  })

  it('cuts a run at maxRunBytes, and a larger event goes alone', async () => {
    const lengths: number[] = []
    await using stand = await relayStand()
    await stand.enqueue(...[3000, 3000, 3000, 20_000, 10].map((bytes) => ({ payload: Buffer.alloc(bytes, 'x') })))
    await stand
      .relay({
        maxRunBytes: 7000,
        onSignal(signal) {
          if (signal.kind === 'published') lengths.push(signal.events.length)
        },
      })
      .drain()
    expect(lengths).toEqual([2, 1, 1, 1])
    expect(stand.delivered.map(({ length }) => length)).toEqual([3000, 3000, 3000, 20_000, 10])
  })
})

describe('failures', () => {
  it('end as failed after the last attempt, and somebody is told', async () => {
    const told: unknown[] = []
    await using stand = await relayStand(() => rejected)
    await stand.enqueue({ payload: 'poison' })
    await using relay = stand.relay({
      ...quick,
      maxAttempts: 3,
      onFailed: (event, cause) => void told.push([event.key, event.attempts, cause]),
    })
    await relay.start()
    const signal = await stand.signal(({ kind }) => kind === 'failed')
    expect(signal).toMatchObject({ held: false, event: { key: 'k', attempts: 3 } })
    expect(told).toEqual([['k', 3, rejected.cause]])
    const { rows } = await stand.pool.query('select status, attempts, last_error from outbox.events')
    expect(rows).toEqual([{ status: 'failed', attempts: 3, last_error: 'Error: the broker says no' }])
    expect((await stand.pool.query('select 1 from outbox.failures')).rowCount).toBe(3)
  })

  it('hold their key after the last attempt when asked to', async () => {
    await using stand = await relayStand((event) => (event.headers['poison'] === 'true' ? rejected : undefined))
    await stand.enqueue(
      { payload: 'poison', headers: { poison: true } },
      { payload: 'behind' },
      { key: 'other', payload: 'other' },
    )
    await stand.relay({ maxAttempts: 1, onExhausted: 'hold' }).drain()
    expect(stand.delivered).toEqual(['other'])
    expect(await stand.states()).toEqual({ held: 1, pending: 1, published: 1 })
  })

  it('never end with Infinity attempts', async () => {
    await using stand = await relayStand((_, tries) => (tries <= 15 ? rejected : undefined))
    await stand.enqueue({ payload: 'stubborn' })
    await using relay = stand.relay({ backoffBaseMs: 0, backoffCapMs: 0, maxAttempts: Infinity })
    await relay.start()
    expect(await stand.deliveries(1)).toEqual(['stubborn'])
  })

  it('wait as long as the broker asked', async () => {
    await using stand = await relayStand(() => ({ ...rejected, retryAfterMs: 3_600_000 }))
    await stand.enqueue({ payload: 'x' })
    await stand.relay(quick).drain()
    const { rows } = await stand.pool.query<{ wait: number }>(
      'select extract(epoch from available_at - now())::float8 wait from outbox.events',
    )
    expect(rows[0]?.wait).toBeGreaterThan(3500)
  })

  it('are stored whatever their text contains, without credentials', async () => {
    await using stand = await relayStand(() => ({
      kind: 'rejected',
      cause: new Error('a\0b \ud83d redis://user:secret@host/0 failed'),
    }))
    await stand.enqueue({ payload: 'x' })
    await stand.relay(quick).drain()
    const { rows } = await stand.pool.query<{ last_error: string }>('select last_error from outbox.events')
    expect(rows[0]?.last_error).toContain('redis://***@host/0')
    expect(rows[0]?.last_error).not.toContain('secret')
  })

  it('of an event whose destination cannot be told are its own', async () => {
    await using stand = await relayStand(undefined, {
      destination(event) {
        if (event.key === 'bad') throw new Error('no stream for this event')
        return event.topic
      },
    })
    await stand.enqueue({ key: 'bad', payload: 'bad' }, { key: 'good', payload: 'good' })
    await stand.relay().drain()
    expect(stand.delivered).toEqual(['good'])
    expect(await stand.states()).toEqual({ failed: 1, published: 1 })
  })

  it('of an event that the publisher can never take cost one attempt and no call', async () => {
    let calls = 0
    await using stand = await relayStand(
      () => {
        calls += 1
        return undefined
      },
      { validate: (event) => (event.key === 'bad' ? { reason: 'the key is bad' } : undefined) },
    )
    await stand.enqueue({ key: 'bad', payload: 'x' })
    await stand.relay().drain()
    expect(calls).toBe(0)
    expect(await stand.states()).toEqual({ failed: 1 })
  })
})
