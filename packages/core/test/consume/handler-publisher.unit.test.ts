import { randomUUID } from 'node:crypto'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { permanent, retryAt, retryIn, transient } from '../../src/consume/handler-answer.ts'
import { type Handler, handlerPublisher } from '../../src/consume/handler-publisher.ts'
import { defineEvents } from '../../src/contract/event-registry.ts'
import type { OutboxEvent } from '../../src/contract/event.ts'
import type { Publisher, RunResult } from '../../src/contract/publisher.ts'
import { gate } from '../support/gate.ts'
import { shop } from '../support/shop-events.ts'

function event(part: Partial<OutboxEvent> = {}): OutboxEvent {
  return {
    id: '1',
    eventId: randomUUID(),
    topic: 'orders',
    key: 'a',
    type: 'order.placed',
    payload: Buffer.from('{"id":"o-1"}'),
    contentType: 'application/json',
    headers: {},
    attempt: 1,
    requeues: 0,
    createdAt: new Date(),
    ...part,
  }
}

const never = new AbortController().signal

async function connected(publisher: Publisher): Promise<Publisher> {
  await publisher.connect(never)
  return publisher
}

/** What becomes of one event whose handler is this. */
async function outcome(handler: Handler, part: Partial<OutboxEvent> = {}): Promise<RunResult> {
  const publisher = await connected(handlerPublisher({ 'order.placed': handler }))
  return publisher.publish([event(part)], never)
}

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

describe('an event goes to the handler', () => {
  const publisherFor = (...names: string[]): { publisher: Publisher; called: string[] } => {
    const called: string[] = []
    const handlers = Object.fromEntries(names.map((name) => [name, () => called.push(name)]))
    return { publisher: handlerPublisher(handlers), called }
  }

  it.each<[string, string[], Partial<OutboxEvent>, string]>([
    ['of its type', ['order.placed', 'orders'], {}, 'order.placed'],
    ['of its topic, where none is named for its type', ['order.paid', 'orders'], {}, 'orders'],
    ['of its topic, where it has no type', ['order.placed', 'orders'], { type: null }, 'orders'],
  ])('%s', async (_, names, part, expected) => {
    const { publisher, called } = publisherFor(...names)
    await connected(publisher)
    expect(await publisher.publish([event(part)], never)).toEqual({ acknowledged: 1 })
    expect(called).toEqual([expected])
    expect(publisher.destination(event(part))).toBe(expected)
    expect(publisher.validate?.(event(part))).toBeUndefined()
  })

  it('and fails at once where there is none, also by a name that every object has', async () => {
    const { publisher, called } = publisherFor('order.paid')
    await connected(publisher)
    for (const part of [{}, { type: 'constructor' }, { type: null, topic: '__proto__' }]) {
      expect(await publisher.publish([event(part)], never)).toMatchObject({
        acknowledged: 0,
        failure: { kind: 'permanent' },
      })
      expect(publisher.validate?.(event(part))?.reason).toContain('no handler')
    }
    expect(called).toEqual([])
  })

  it('for everything else, where there is one', async () => {
    const got: OutboxEvent[] = []
    const publisher = await connected(handlerPublisher({}, { otherwise: (each) => got.push(each) }))
    const sent = event()
    expect(publisher.validate?.(sent)).toBeUndefined()
    expect(publisher.destination(sent)).toBe('orders')
    expect(await publisher.publish([sent], never)).toEqual({ acknowledged: 1 })
    expect(got).toEqual([sent])
  })

  it('with the event as it is, a tombstone too, and a signal', async () => {
    const tombstone = event({ payload: null })
    const publisher = await connected(
      handlerPublisher({
        orders(got, { signal }) {
          expect([got, signal.aborted]).toEqual([tombstone, false])
        },
      }),
    )
    expect(await publisher.publish([{ ...tombstone }], never)).toEqual({ acknowledged: 1 })
  })
})

describe('what a handler throws decides', () => {
  const fault = new Error('no')

  it.each<[string, () => unknown, object]>([
    ['an error is rejected', () => fault, { kind: 'rejected', cause: fault }],
    ['a text too', () => 'no', { kind: 'rejected', cause: 'no' }],
    ['nothing too', () => undefined, { kind: 'rejected', cause: new Error('the handler threw nothing') }],
    [
      'retryIn is rejected with a time',
      () => retryIn(1500, fault),
      { kind: 'rejected', retryAfterMs: 1500, cause: fault },
    ],
    ['retryIn(0) is at once', () => retryIn(0, fault), { kind: 'rejected', retryAfterMs: 0, cause: fault }],
    [
      'retryAt of a moment that has passed is at once',
      () => retryAt(new Date(0), fault),
      { kind: 'rejected', retryAfterMs: 0, cause: fault },
    ],
    ['transient is not counted', () => transient(fault), { kind: 'unknown', cause: fault }],
    ['permanent fails at once', () => permanent(fault), { kind: 'permanent', cause: fault }],
  ])('%s', async (_, thrown, failure) => {
    const thrower = (): never => {
      throw thrown()
    }
    expect(await outcome(thrower)).toEqual({ acknowledged: 0, failure })
    expect(await outcome(async () => thrower())).toEqual({ acknowledged: 0, failure })
  })

  it('retryAt counts from the moment of the answer', async () => {
    const { failure } = await outcome(() => {
      throw retryAt(new Date(Date.now() + 60_000))
    })
    expect(failure?.retryAfterMs).toBeGreaterThan(50_000)
    expect(failure?.retryAfterMs).toBeLessThanOrEqual(60_000)
    expect(failure?.cause).toMatchObject({ message: expect.stringMatching(/^try again at \d{4}-/) as string })
  })

  it.each([Number.NaN, -1, Infinity, 24 * 3600 * 1000 + 1, '5' as never, undefined as never])(
    'retryIn(%s) says what is wrong with it, as a failure like any',
    async (ms) => {
      expect(() => retryIn(ms)).toThrow(expect.objectContaining({ code: 'OPTIONS_INVALID' }))
      const { failure } = await outcome(() => {
        throw retryIn(ms)
      })
      expect(failure).toMatchObject({ kind: 'rejected', cause: { code: 'OPTIONS_INVALID' } })
      expect(failure).not.toHaveProperty('retryAfterMs')
    },
  )

  it.each([new Date('no date'), new Date(Date.now() + 25 * 3600 * 1000), 5 as never, undefined as never])(
    'retryAt(%s) too',
    (date) => {
      expect(() => retryAt(date)).toThrow(expect.objectContaining({ code: 'OPTIONS_INVALID' }))
    },
  )

  it('even when it only returns the answer; any other value that it returns is nothing', async () => {
    expect(await outcome(async () => retryIn(5))).toMatchObject({ acknowledged: 0, failure: { retryAfterMs: 5 } })
    const ended: RunResult = { acknowledged: 1 }
    for (const value of [false, null, new Error('x'), { acknowledged: 0 }, Symbol('x')])
      expect(await outcome(() => value)).toEqual(ended)
  })

  it('without touching the events in front: the one that failed is the first of the rest', async () => {
    const handled: string[] = []
    const publisher = await connected(
      handlerPublisher({
        orders({ id }) {
          handled.push(id)
          if (id === '2') throw fault
        },
      }),
    )
    const run = ['1', '2', '3'].map((id) => event({ id }))
    expect(await publisher.publish(run, never)).toEqual({
      acknowledged: 1,
      failure: { kind: 'rejected', cause: fault },
    })
    expect(handled).toEqual(['1', '2'])
    expect(publisher.capabilities.maxRun).toBe(1)
  })
})

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

describe('with a registry', () => {
  it('a handler gets its own payload', async () => {
    const got: unknown[] = []
    const publisher = await connected(
      handlerPublisher(
        {
          'order.placed': ({ name, payload, key }) => {
            expectTypeOf(name).toEqualTypeOf<'order.placed'>()
            expectTypeOf(payload.total).toEqualTypeOf<number>()
            got.push([name, payload, key])
          },
          profiles({ payload }) {
            expectTypeOf(payload).toEqualTypeOf<{ user: string } | null>()
            got.push(payload)
          },
        },
        { events: shop },
      ),
    )
    await publisher.publish([event()], never)
    await publisher.publish([event({ topic: 'profiles', type: null, payload: null })], never)
    expect(got).toEqual([['order.placed', { id: 'o-1', total: 0 }, 'a'], null])
    // @ts-expect-error no such event
    expect(() => handlerPublisher({ 'order.payd': () => undefined }, { events: shop })).toThrow('registry')
    // @ts-expect-error a member that the payload does not have
    handlerPublisher({ stock: ({ payload }) => payload.wings }, { events: shop })
  })

  it.each<[string, Partial<OutboxEvent>]>([
    ['a payload that its schema refuses', { payload: Buffer.from('{}') }],
    ['no JSON', { payload: Buffer.from('{') }],
    ['no payload where there must be one', { payload: null }],
  ])('%s fails at once, and no handler sees it', async (_, part) => {
    const publisher = await connected(
      handlerPublisher({ 'order.placed': () => expect.fail('handled') }, { events: shop }),
    )
    expect(await publisher.publish([event(part)], never)).toMatchObject({
      acknowledged: 0,
      failure: { kind: 'permanent', cause: { message: expect.stringContaining('/payload') as string } },
    })
  })

  it('a schema that throws is tried again', async () => {
    const validate = (): never => {
      throw new RangeError('no connection')
    }
    const events = defineEvents({
      orders: { schema: { '~standard': { version: 1, vendor: 'hand', validate } }, key: () => null },
    })
    const publisher = await connected(handlerPublisher({ orders: () => undefined }, { events }))
    expect(await publisher.publish([event()], never)).toMatchObject({ failure: { kind: 'rejected' } })
  })
})

describe('handlerPublisher', () => {
  it('refuses everything that is wrong in one error', () => {
    const refusal = (handlers: unknown, options?: unknown): string[] => {
      try {
        handlerPublisher(handlers as never, options as never)
      } catch (error) {
        return (error as { problems: { path: string }[] }).problems.map(({ path }) => path)
      }
      return []
    }
    expect(refusal({ a: 1, b: () => 0 }, { otherwise: 5, nmae: 'x' })).toEqual(['otherwise', 'nmae', 'a'])
    expect(refusal({})).toEqual(['handlers'])
    expect(refusal(null)).toEqual(['handlers'])
    expect(refusal({}, { otherwise: () => 0 })).toEqual([])
    expect(refusal({ nope: () => 0 }, { events: shop })).toEqual(['nope'])
  })
})
