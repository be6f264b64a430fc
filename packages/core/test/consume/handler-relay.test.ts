import { describe, expect, it } from 'vitest'
import { permanent, retryAt, retryIn, transient } from '../../src/consume/handler-answer.ts'
import { type Handler, handlerPublisher } from '../../src/consume/handler-publisher.ts'
import { gate } from '../support/gate.ts'
import { relayStand } from '../support/relay-stand.ts'

/** The tries so far of each event, this one included. */
function tries(): (eventId: string) => number {
  const counts = new Map<string, number>()
  return (eventId) => {
    const count = (counts.get(eventId) ?? 0) + 1
    counts.set(eventId, count)
    return count
  }
}

const text = (payload: Uint8Array | null): string => Buffer.from(payload ?? []).toString()

describe('handlers of a relay', () => {
  it('run in the order of each key, whatever fails, and none that succeeded runs again', async () => {
    await using stand = await relayStand()
    const [handled, begun]: [string[], string[]] = [[], []]
    const nth = tries()
    const orders: Handler = async ({ eventId, payload }) => {
      begun.push(text(payload))
      const count = nth(eventId)
      await Promise.resolve()
      if (count === 1 && text(payload).endsWith('2')) throw new Error('the second of each key fails once')
      if (count < 3 && text(payload) === 'b4') throw retryIn(0)
      handled.push(text(payload))
    }
    const keys = ['a', 'b', 'c']
    await stand.enqueue(...keys.flatMap((key) => [1, 2, 3, 4, 5].map((n) => ({ key, payload: `${key}${String(n)}` }))))
    await using relay = stand.relay({ publisher: handlerPublisher({ orders }), backoffBaseMs: 5, backoffCapMs: 5 })
    await relay.start()
    await stand.signal(() => handled.length === 15)
    for (const key of keys)
      expect(handled.filter((each) => each.startsWith(key))).toEqual([1, 2, 3, 4, 5].map((n) => `${key}${String(n)}`))
    expect(begun).toHaveLength(15 + 3 + 2)
  })

  it.each([
    ['retryIn', () => retryIn(3_600_000)],
    ['retryAt', () => retryAt(new Date(Date.now() + 3_600_000))],
  ])('say with %s when, and that wins over the backoff', async (_, answer) => {
    await using stand = await relayStand()
    await stand.enqueue({ payload: 'x' })
    await stand
      .relay({
        publisher: handlerPublisher({
          orders() {
            throw answer()
          },
        }),
      })
      .drain()
    const { rows } = await stand.pool.query<{ wait: number; attempts: number }>(
      'select extract(epoch from available_at - now())::float8 wait, attempts from outbox.events',
    )
    expect(rows[0]?.wait).toBeGreaterThan(3500)
    expect(rows[0]?.wait).toBeLessThanOrEqual(3600)
    expect(rows[0]?.attempts).toBe(1)
  })

  it('say with permanent that an event fails, and its key goes on; so does an event that nobody handles', async () => {
    await using stand = await relayStand()
    const handled: string[] = []
    const publisher = handlerPublisher({
      'order.placed'({ payload }) {
        if (text(payload) === 'bad') throw permanent('no such customer')
        handled.push(text(payload))
      },
    })
    await stand.enqueue(
      { type: 'order.placed', payload: 'bad' },
      { type: 'order.shipped', payload: 'nobody' },
      { type: 'order.placed', payload: 'good' },
    )
    await stand.relay({ publisher }).drain()
    expect(handled).toEqual(['good'])
    const { rows } = await stand.pool.query('select status, attempts, last_error from outbox.events order by id')
    expect(rows).toEqual([
      { status: 'failed', attempts: 1, last_error: 'no such customer' },
      {
        status: 'failed',
        attempts: 1,
        last_error: 'Error: There is no handler for events of type order.shipped in topic orders',
      },
      { status: 'published', attempts: 0, last_error: null },
    ])
  })

  it('say with transient that it is no fault of the event: no attempt is spent although others succeed, and its key waits', async () => {
    await using stand = await relayStand()
    const handled: string[] = []
    const others: Promise<void>[] = []
    const orders: Handler = ({ key, payload }) => {
      if (key === 'away' && others.length < 5) {
        others.push(stand.enqueue({ key: `other-${String(others.length)}`, payload: 'fine' }))
        throw transient(new Error('the warehouse is down'))
      }
      handled.push(text(payload))
    }
    await stand.enqueue({ key: 'away', payload: '1' }, { key: 'away', payload: '2' })
    // Between every two tries the same handler succeeds for somebody else, and one attempt would be the last.
    await using relay = stand.relay({
      publisher: handlerPublisher({ orders }),
      maxAttempts: 1,
      backoffBaseMs: 400,
      backoffCapMs: 400,
    })
    await relay.start()
    await stand.signal(() => handled.includes('2'))
    await Promise.all(others)
    expect(handled.slice(-2)).toEqual(['1', '2'])
    expect(handled.filter((each) => each === 'fine')).toHaveLength(5)
    await relay.drain()
    expect(await stand.states()).toEqual({ published: 7 })
    const { rows } = await stand.pool.query<{ attempts: string; failures: string }>(
      'select sum(attempts) attempts, (select count(*) from outbox.failures) failures from outbox.events',
    )
    expect(rows).toEqual([{ attempts: '0', failures: '0' }])
  })

  it('that are slower than the deadline are not run a second time, and their key waits for them', async () => {
    await using stand = await relayStand()
    const { opened, open } = gate()
    const begun: string[] = []
    const publisher = handlerPublisher({
      async orders({ payload }) {
        begun.push(text(payload))
        await opened
      },
    })
    await stand.enqueue({ payload: 'slow' }, { payload: 'behind' })
    await using relay = stand.relay({ publisher, publishTimeoutMs: 30, backoffBaseMs: 5, backoffCapMs: 5 })
    await relay.start()
    const gaveUp = (): number =>
      stand.signals.filter((signal) => signal.kind === 'published' && signal.failure?.kind === 'unknown').length
    await stand.signal(() => gaveUp() >= 3)
    expect(begun).toEqual(['slow'])
    open()
    await stand.signal(() => relay.counts().published === 2)
    expect(begun).toEqual(['slow', 'behind'])
  })
})
