import { describe, expect, it } from 'vitest'
import { permanent, retryAt, retryIn, transient } from '../../src/consume/handler-answer.ts'
import { handlerPublisher } from '../../src/consume/handler-publisher.ts'
import type { OutboxEvent } from '../../src/contract/event.ts'
import type { Publisher, RunResult } from '../../src/contract/publisher.ts'
import { connected, event, never, outcome } from '../support/handled-event.ts'
import { shop } from '../support/shop-events.ts'

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
    ['transient is not counted', () => transient(fault), { kind: 'transient', cause: fault }],
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
