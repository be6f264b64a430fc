import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { OutboxEvent } from '../../src/contract/event.ts'
import type { RunResult } from '../../src/contract/publisher.ts'
import { hostile } from '../support/hostile.ts'
import type { RelayStand } from '../support/relay-stand.ts'
import { sharedStand } from '../support/shared-stand.ts'
import { testPublisher } from '../support/test-publisher.ts'

const shared = sharedStand()

/** A rejection with anything at all. */
async function rejecting(reason: unknown): Promise<never> {
  await Promise.resolve()
  throw reason as Error
}

const quick = { backoffBaseMs: 5, backoffCapMs: 10, breakerMinMs: 1, breakerMaxMs: 10 }

/** Nothing of the library may leave a rejection that nobody handles: it would end the user's process. */
const unhandled: unknown[] = []
const keep = (reason: unknown): void => void unhandled.push(reason)
beforeAll(() => process.on('unhandledRejection', keep))
afterAll(() => void process.off('unhandledRejection', keep))

async function untilPublished(stand: RelayStand, count: number): Promise<void> {
  await expect.poll(() => stand.states(), { timeout: 20_000 }).toEqual({ published: count })
}

describe('an answer of no known shape', () => {
  const garbage: readonly (readonly [string, () => unknown])[] = [
    ['null', () => null],
    ['a number', () => 3],
    ['a text', () => 'ok'],
    ['a list', () => [{ acknowledged: 3 }]],
    ['true', () => true],
    ['an empty object', () => ({})],
    ['a count as text', () => ({ acknowledged: '3' })],
    ['a count as bigint', () => ({ acknowledged: 3n })],
    ['a count that is a symbol', () => ({ acknowledged: Symbol('3') })],
    ['a count that is half an event', () => ({ acknowledged: 1.5 })],
    ['an endless count', () => ({ acknowledged: Infinity })],
    ['a huge count', () => ({ acknowledged: 2 ** 53 })],
    ['a count below zero that is almost none', () => ({ acknowledged: -1e-9 })],
    ['an object that throws when it is read', hostile],
    ['a count that throws when it is shown', () => ({ acknowledged: { toString: hostile } })],
    ['a failure that throws when it is read', () => ({ acknowledged: 0, failure: hostile() as unknown })],
    ['a failure of null', () => ({ acknowledged: 0, failure: null })],
    ['a failure that is a text', () => ({ acknowledged: 0, failure: 'rejected' })],
    ['a failure of a list', () => ({ acknowledged: 0, failure: [] })],
    ['more than it was given and a failure', () => ({ acknowledged: 4, failure: { kind: 'rejected', cause: 'x' } })],
    ['an error that it returned', () => new Error('returned')],
  ]

  it.each(garbage)('(%s) is unknown: reported, nothing lost, nothing counted, order kept', async (_, answer) => {
    let calls = 0
    const seen: string[] = []
    const { stand } = shared
    await stand.enqueue({ payload: '1' }, { payload: '2' }, { payload: '3' })
    const publisher = testPublisher((run) => {
      calls += 1
      if (calls === 1) return answer() as RunResult
      for (const { payload } of run) seen.push(Buffer.from(payload ?? []).toString())
      return { acknowledged: run.length }
    })
    await using relay = stand.relay({ ...quick, publisher, maxAttempts: 1 })
    await relay.start()
    await stand.signal(({ kind }) => kind === 'fault')
    await untilPublished(stand, 3)
    expect(seen).toEqual(['1', '2', '3'])
    expect(calls).toBe(2)
    expect(relay.counts()).toEqual({ published: 3, counted: 0, failed: 0 })
    expect(relay.health()).toMatchObject({ state: 'running', live: true, observerFault: undefined })
    expect(unhandled).toEqual([])
  })
})

describe('a thrown value', () => {
  it.each<[string, (run: readonly OutboxEvent[]) => Promise<RunResult>]>([
    ['thrown before anything waits', () => hostile()],
    ['undefined', () => rejecting(undefined)],
    ['a text', () => rejecting('down')],
    ['one that throws when it is read', () => rejecting(hostile())],
    [
      'an error in a circle',
      () =>
        Promise.reject(
          Object.assign(new Error('a'), {
            get cause() {
              return this
            },
          }),
        ),
    ],
  ])('(%s) is unknown as well', async (_, throwing) => {
    let calls = 0
    const { stand } = shared
    await stand.enqueue({ payload: '1' })
    const publisher = testPublisher((run) => ((calls += 1) === 1 ? throwing(run) : { acknowledged: 1 }))
    await using relay = stand.relay({ ...quick, publisher, maxAttempts: 1 })
    await relay.start()
    await stand.signal(({ kind }) => kind === 'fault')
    await untilPublished(stand, 1)
    expect(unhandled).toEqual([])
  })
})

describe('the cause of a failure', () => {
  const causes: readonly unknown[] = [
    undefined,
    null,
    '',
    0,
    -0,
    NaN,
    10n ** 30n,
    Symbol('cause'),
    () => 'cause',
    [],
    {},
    new Map([[1, 2]]),
    'NUL \0 and half an emoji \ud83d',
    'x'.repeat(5_000_000),
    'ż'.repeat(3000),
    new Error('outer', { cause: new Error('inner', { cause: 'innermost' }) }),
    new AggregateError([new Error('one'), new Error('two')], ''),
    Object.create(null),
    { toJSON: hostile },
    new Date(NaN),
    Buffer.alloc(100_000),
  ]
  const circle: { self?: unknown } = {}
  circle.self = circle

  it('may be anything: the failure is written with a text, the key goes on and somebody is told', async () => {
    const all = [...causes, circle, hostile() as unknown]
    const told: unknown[] = []
    const { stand } = shared
    shared.answer = ({ headers }) =>
      headers['cause'] === undefined ? undefined : { kind: 'rejected', cause: all[Number(headers['cause'])] }
    for (const index of all.keys())
      await stand.enqueue(
        { key: String(index), payload: 'bad', headers: { cause: index } },
        { key: String(index), payload: String(index) },
      )
    await using relay = stand.relay({ ...quick, maxAttempts: 2, onFailed: (_, cause) => void told.push(cause) })
    await relay.start()
    await stand.deliveries(all.length)
    await relay.drain()
    expect(await stand.states()).toEqual({ failed: all.length, published: all.length })
    expect(told).toHaveLength(all.length)
    const { rows } = await stand.pool.query<{ longest: number; silent: number; attempts: number }>(
      `select max(length(last_error)) longest, count(*) filter (where coalesce(last_error, '') = '')::int silent, sum(attempts)::int attempts
       from outbox.events where status = 'failed'`,
    )
    expect(rows).toEqual([{ longest: 2000, silent: 0, attempts: 2 * all.length }])
    expect(stand.signals.filter(({ kind }) => kind === 'fault' || kind === 'database')).toEqual([])
    expect(unhandled).toEqual([])
  })
})
