import { describe, expect, it } from 'vitest'
import { retryIn } from '../../src/consume/handler-answer.ts'
import { type Handler, handlerPublisher } from '../../src/consume/handler-publisher.ts'
import { gate } from '../support/gate.ts'
import { connected, event, never } from '../support/handled-event.ts'

/** A handler that ends when it is told to, whatever its signal says, and how often it was called. */
function deaf(): { handler: Handler; calls: () => number; end: () => void; fail: () => void } {
  let calls = 0
  const turns: { opened: Promise<void>; open: () => void }[] = []
  const failing = new Set<number>()
  return {
    async handler() {
      const turn = gate()
      const number = calls++
      turns.push(turn)
      await turn.opened
      if (failing.has(number)) throw new Error('late failure')
    },
    calls: () => calls,
    end: () => turns.at(-1)?.open(),
    fail() {
      failing.add(calls - 1)
      turns.at(-1)?.open()
    },
  }
}

const aTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

describe('a handler whose signal aborts', () => {
  it('and that heeds it, has an unknown outcome and is run again', async () => {
    let calls = 0
    const publisher = await connected(
      handlerPublisher({
        orders: (_, { signal }) => {
          calls += 1
          return new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason as Error))
          })
        },
      }),
    )
    const sent = event()
    for (const expected of [1, 2]) {
      const late = new AbortController()
      const published = publisher.publish([sent], late.signal)
      late.abort(new Error('the deadline'))
      expect(await published).toEqual({
        acknowledged: 0,
        failure: { kind: 'unknown', cause: new Error('the deadline') },
      })
      expect(calls).toBe(expected)
    }
    expect((await publisher.check()).findings).toEqual([])
  })

  it('may still say what its end means', async () => {
    const publisher = await connected(
      handlerPublisher({
        orders: (_, { signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(retryIn(9000)))
          }),
      }),
    )
    const late = new AbortController()
    const published = publisher.publish([event()], late.signal)
    late.abort()
    expect(await published).toMatchObject({ failure: { kind: 'rejected', retryAfterMs: 9000 } })
  })

  it('and that ignores it, is not started again while it runs, and its late success is the answer', async () => {
    const { handler, calls, end } = deaf()
    const publisher = await connected(handlerPublisher({ orders: handler }))
    const sent = event()
    for (let tries = 0; tries < 3; tries++) {
      const late = new AbortController()
      const published = publisher.publish([sent], late.signal)
      await aTurn()
      late.abort(new Error('the deadline'))
      expect(await published).toMatchObject({ acknowledged: 0, failure: { kind: 'unknown' } })
    }
    expect((await publisher.check()).findings).toEqual([
      expect.objectContaining({
        severity: 'warning',
        what: expect.stringContaining(sent.eventId) as string,
      }) as unknown,
    ])
    const retried = publisher.publish([sent], never)
    end()
    expect(await retried).toEqual({ acknowledged: 1 })
    expect(calls()).toBe(1)
    expect((await publisher.check()).findings).toEqual([])
  })

  it('and that succeeds between two tries, is not started again', async () => {
    const { handler, calls, end } = deaf()
    const publisher = await connected(handlerPublisher({ orders: handler }))
    const sent = event()
    const late = new AbortController()
    const published = publisher.publish([sent], late.signal)
    late.abort()
    await published
    end()
    await aTurn()
    expect(await publisher.publish([sent], never)).toEqual({ acknowledged: 1 })
    expect(calls()).toBe(1)
  })

  it('and that fails afterwards, is started again, at once where a retry waits for it', async () => {
    const { handler, calls, end, fail } = deaf()
    const publisher = await connected(handlerPublisher({ orders: handler }))
    const sent = event()
    const late = new AbortController()
    const published = publisher.publish([sent], late.signal)
    late.abort()
    await published
    const retried = publisher.publish([sent], never)
    fail()
    await aTurn()
    expect(calls()).toBe(2)
    end()
    expect(await retried).toEqual({ acknowledged: 1 })
  })

  it('does not stand in the way of an operator who puts the event back in line', async () => {
    const { handler, calls, end } = deaf()
    const publisher = await connected(handlerPublisher({ orders: handler }))
    const sent = event()
    const late = new AbortController()
    const published = publisher.publish([sent], late.signal)
    late.abort()
    await published
    const requeued = publisher.publish([{ ...sent, requeues: 1 }], never)
    await aTurn()
    expect(calls()).toBe(2)
    end()
    expect(await requeued).toEqual({ acknowledged: 1 })
  })

  it('holds up no other event', async () => {
    const { handler } = deaf()
    const publisher = await connected(handlerPublisher({ slow: handler, orders: () => undefined }))
    const late = new AbortController()
    const slow = publisher.publish([event({ type: 'slow' })], late.signal)
    expect(await publisher.publish([event()], never)).toEqual({ acknowledged: 1 })
    late.abort()
    await slow
  })
})

describe('close', () => {
  it('aborts what runs, and resolves although a handler ignores it', async () => {
    const { handler } = deaf()
    const publisher = await connected(handlerPublisher({ orders: handler }))
    const published = publisher.publish([event()], never)
    await publisher.close()
    expect(await published).toMatchObject({ acknowledged: 0, failure: { kind: 'unknown' } })
    expect(await publisher.publish([event()], never)).toMatchObject({ failure: { kind: 'unavailable' } })
  })
})
