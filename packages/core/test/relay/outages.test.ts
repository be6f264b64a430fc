import { describe, expect, it } from 'vitest'
import type { RunResult } from '../../src/contract/publisher.ts'
import { relayStand } from '../support/relay-stand.ts'
import { testPublisher } from '../support/test-publisher.ts'

const quick = { backoffBaseMs: 20, backoffCapMs: 40, breakerMinMs: 5, breakerMaxMs: 20 }

describe('an outage of the broker', () => {
  it('costs no attempt, fails no event, and everything follows in order', async () => {
    let down = true
    let tried = 0
    await using stand = await relayStand(() => {
      tried += 1
      return down ? { kind: 'unavailable', cause: new Error('refused') } : undefined
    })
    await stand.enqueue(
      ...Array.from({ length: 500 }, (_, n) => ({
        key: `k${String(n % 50)}`,
        payload: `${String(n % 50)}:${String(Math.floor(n / 50))}`,
      })),
    )
    await using relay = stand.relay({ ...quick, maxAttempts: 1 })
    await relay.start()
    await stand.signal((signal) => signal.kind === 'breaker' && signal.open)
    const atOpening = tried
    // Twenty pauses later only probes have gone out, one lane at a time.
    await stand.signal(() => tried >= atOpening + 20)
    expect(relay.health().unavailable).toMatchObject([{ destination: '*' }])
    down = false
    await stand.deliveries(500)
    await relay.drain()
    for (let key = 0; key < 50; key++) {
      expect(stand.delivered.filter((payload) => payload.startsWith(`${String(key)}:`))).toEqual(
        Array.from({ length: 10 }, (_, n) => `${String(key)}:${String(n)}`),
      )
    }
    const { rows } = await stand.pool.query('select status, attempts, count(*)::int from outbox.events group by 1, 2')
    expect(rows).toEqual([{ status: 'published', attempts: 0, count: 500 }])
    expect(relay.health().unavailable).toEqual([])
  })

  it('of one destination leaves the others alone', async () => {
    await using stand = await relayStand((event) =>
      event.topic === 'down' ? { kind: 'unavailable', destination: 'down', cause: new Error('no leader') } : undefined,
    )
    await stand.enqueue(
      ...Array.from({ length: 20 }, (_, n) => ({ topic: 'down', key: `k${String(n)}`, payload: 'stuck' })),
      ...Array.from({ length: 20 }, (_, n) => ({ topic: 'up', key: `k${String(n)}`, payload: 'fine' })),
    )
    await using relay = stand.relay(quick)
    await relay.start()
    expect(new Set(await stand.deliveries(20))).toEqual(new Set(['fine']))
    await stand.enqueue({ topic: 'up', payload: 'later' })
    expect((await stand.deliveries(21)).at(-1)).toBe('later')
    const { rows } = await stand.pool.query(
      "select status, attempts, count(*)::int from outbox.events where topic = 'down' group by 1, 2",
    )
    expect(rows).toEqual([{ status: 'pending', attempts: 0, count: 20 }])
  })

  it('is over when the destination answers about an event, if only that this one cannot be taken yet', async () => {
    await using stand = await relayStand((event, tries) => {
      if (event.key !== 'a') return undefined
      return tries === 1
        ? { kind: 'unavailable', destination: 'orders', cause: new Error('down') }
        : { kind: 'transient', cause: new Error('not this one yet'), retryAfterMs: 3_600_000 }
    })
    await stand.enqueue({ key: 'a', payload: 'waits' })
    await using relay = stand.relay(quick)
    await relay.start()
    await stand.signal((signal) => signal.kind === 'breaker' && !signal.open)
    await stand.enqueue({ key: 'b', payload: 'goes' })
    expect(await stand.deliveries(1)).toEqual(['goes'])
  })

  it('at the start is waited for', async () => {
    let connects = 0
    await using stand = await relayStand(undefined, {
      connect: () => {
        connects += 1
        return connects < 4 ? Promise.reject(new Error('connection refused')) : Promise.resolve()
      },
    })
    await stand.enqueue({ payload: 'x' })
    await using relay = stand.relay(quick)
    await relay.start()
    expect(await stand.deliveries(1)).toEqual(['x'])
    expect(connects).toBe(4)
  })
})

describe('an unknown outcome', () => {
  it('is tried again first, with the same event id, and is not counted while nothing else is acknowledged', async () => {
    const ids: string[] = []
    await using stand = await relayStand((event, tries) => {
      ids.push(event.eventId)
      return tries <= 3 ? { kind: 'unknown', cause: new Error('timeout') } : undefined
    })
    await stand.enqueue({ payload: 'a' }, { payload: 'b' })
    await using relay = stand.relay({ ...quick, maxAttempts: 1 })
    await relay.start()
    expect(await stand.deliveries(2)).toEqual(['a', 'b'])
    expect(new Set(ids.slice(0, 4)).size).toBe(1)
    await relay.drain()
    expect(await stand.states()).toEqual({ published: 2 })
  })

  it('is counted from its second time on while the destination acknowledges others', async () => {
    const others: Promise<void>[] = []
    await using stand = await relayStand((event) =>
      event.key === 'cursed' ? { kind: 'unknown', cause: new Error('connection reset') } : undefined,
    )
    await stand.enqueue({ key: 'cursed', payload: 'cursed' })
    await using relay = stand.relay({
      ...quick,
      maxAttempts: 3,
      // Each try is followed by an acknowledgement of somebody else.
      onSignal(signal) {
        if (signal.kind === 'published' && signal.failure?.kind === 'unknown')
          others.push(stand.enqueue({ key: `other-${String(others.length)}`, payload: 'fine' }))
      },
    })
    await relay.start()
    const failed = await stand.signal(({ kind }) => kind === 'failed')
    await Promise.all(others)
    expect(failed).toMatchObject({ event: { key: 'cursed', attempts: 3 } })
    // The first try could not know whether there is an outage, so it was not counted.
    expect(others.length).toBeGreaterThanOrEqual(4)
  })
})

describe('a publisher that breaks its contract', () => {
  const answers: [string, unknown][] = [
    ['undefined', undefined],
    ['a count that is not a number', { acknowledged: NaN }],
    ['a negative count', { acknowledged: -1 }],
    ['more than it was given', { acknowledged: 9 }],
    ['a shortfall without a failure', { acknowledged: 0 }],
    ['a failure beside a full count', { acknowledged: 1, failure: { kind: 'rejected', cause: 'x' } }],
    ['a failure of no known kind', { acknowledged: 0, failure: { kind: 'bad luck' } }],
  ]
  it.each(answers)('by answering with %s loses nothing and is reported', async (_, answer) => {
    let calls = 0
    await using stand = await relayStand()
    await stand.enqueue({ payload: 'x' })
    const publisher = testPublisher(() => ((calls += 1) === 1 ? (answer as RunResult) : { acknowledged: 1 }))
    await using relay = stand.relay({ ...quick, publisher })
    await relay.start()
    await stand.signal(({ kind }) => kind === 'fault')
    await stand.signal((signal) => signal.kind === 'settled' && signal.published === 1)
    expect(calls).toBe(2)
  })

  it('by throwing loses nothing and is reported', async () => {
    let calls = 0
    await using stand = await relayStand()
    await stand.enqueue({ payload: 'x' })
    const publisher = testPublisher(() => {
      calls += 1
      if (calls === 1) throw new Error('a bug in the adapter')
      return { acknowledged: 1 }
    })
    await using relay = stand.relay({ ...quick, publisher })
    await relay.start()
    expect(await stand.signal(({ kind }) => kind === 'fault')).toMatchObject({
      cause: new Error('a bug in the adapter'),
    })
    await stand.signal((signal) => signal.kind === 'settled' && signal.published === 1)
  })

  it('by never answering is replaced, and the event is published by its successor', async () => {
    const calls: string[] = []
    let hangs = true
    await using stand = await relayStand()
    await stand.enqueue({ payload: 'x' })
    const publisher = testPublisher(
      () => {
        calls.push('publish')
        return hangs ? new Promise<RunResult>(() => undefined) : { acknowledged: 1 }
      },
      {
        close: () => {
          calls.push('close')
          hangs = false
          return Promise.resolve()
        },
      },
    )
    await using relay = stand.relay({ ...quick, publisher, publishTimeoutMs: 50, publishGraceMs: 20 })
    await relay.start()
    await stand.signal((signal) => signal.kind === 'settled' && signal.published === 1)
    expect(calls).toEqual(['publish', 'close', 'publish'])
    expect(relay.health().live).toBe(true)
  })

  it('by hanging even in close makes the relay give up its lease and say that it is not live', async () => {
    await using stand = await relayStand()
    await stand.enqueue({ payload: 'x' })
    const publisher = testPublisher(() => new Promise<RunResult>(() => undefined), {
      close: () => new Promise<void>(() => undefined),
    })
    const relay = stand.relay({ ...quick, publisher, publishTimeoutMs: 50, publishGraceMs: 20 })
    await relay.start()
    await stand.signal((signal) => signal.kind === 'fault' && signal.what.includes('gives up its lease'))
    expect(relay.health()).toMatchObject({ live: false, leaseHolds: false })
    await relay.stop()
  })
})
