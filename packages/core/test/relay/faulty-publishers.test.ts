import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { OutboxEvent } from '../../src/contract/event.ts'
import type { Publisher, RunResult } from '../../src/contract/publisher.ts'
import { gate } from '../support/gate.ts'
import { hostile } from '../support/hostile.ts'
import { type RelayStand, relayStand } from '../support/relay-stand.ts'
import { sharedStand } from '../support/shared-stand.ts'
import { testPublisher } from '../support/test-publisher.ts'

let changes: Partial<Publisher> = {}
const shared = sharedStand({
  destination: (event) => (changes.destination ?? topicOf)(event),
  validate: (event) => changes.validate?.(event),
})
afterEach(() => {
  changes = {}
})
const topicOf = ({ topic }: OutboxEvent): string => topic

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

describe('a publish that was told to end', () => {
  /** Answers the first call only when it is told to, whatever the signal says. */
  async function deafPublisher(
    stand: RelayStand,
    changes: Partial<Publisher> = {},
  ): Promise<{
    readonly publisher: Publisher
    readonly calls: string[]
    readonly answer: (result: RunResult | Error) => void
    readonly aborted: Promise<void>
  }> {
    await stand.enqueue({ payload: '1' }, { payload: '2' })
    const calls: string[] = []
    const aborted = gate()
    let answer: (result: RunResult | Error) => void = () => undefined
    const first = new Promise<RunResult>((resolve, reject) => {
      answer = (result) => (result instanceof Error ? reject(result) : resolve(result))
    })
    const publisher = testPublisher((run, signal) => {
      calls.push(run.map(({ payload }) => Buffer.from(payload ?? []).toString()).join(''))
      if (calls.length > 1) return { acknowledged: run.length }
      signal.addEventListener('abort', () => {
        aborted.open()
      })
      return first
    }, changes)
    return { publisher, calls, answer, aborted: aborted.opened }
  }

  it('and answers within its grace is believed: nothing is published again', async () => {
    const { stand } = shared
    const { publisher, calls, answer, aborted } = await deafPublisher(stand)
    await using relay = stand.relay({ ...quick, publisher, publishTimeoutMs: 50, publishGraceMs: 20_000 })
    await relay.start()
    await aborted
    answer({ acknowledged: 2 })
    await untilPublished(stand, 2)
    expect(calls).toEqual(['12'])
    expect(stand.signals.filter(({ kind }) => kind === 'fault')).toEqual([])
  })

  it.each<[string, RunResult | Error]>([
    ['acknowledges', { acknowledged: 2 }],
    ['acknowledges a part', { acknowledged: 1, failure: { kind: 'permanent', cause: 'no' } }],
    ['fails', new Error('too late')],
  ])('and %s after its grace is no longer heard: its events were published again by then, once', async (_, late) => {
    const { stand } = shared
    const { publisher, calls, answer } = await deafPublisher(stand)
    await using relay = stand.relay({ ...quick, publisher, publishTimeoutMs: 30, publishGraceMs: 30 })
    await relay.start()
    await untilPublished(stand, 2)
    answer(late)
    await stand.enqueue({ payload: '3' })
    await untilPublished(stand, 3)
    expect(calls).toEqual(['12', '12', '3'])
    expect(relay.counts()).toEqual({ published: 3, counted: 0, failed: 0 })
    expect(relay.health()).toMatchObject({ live: true, publisher: { state: 'ready' } })
    expect(unhandled).toEqual([])
  })
})

describe('a publisher that spoils what it is given', () => {
  it('takes the list of events apart, and is believed all the same', async () => {
    const { stand } = shared
    await stand.enqueue(...['1', '2', '3', '4'].map((payload) => ({ payload })))
    const taken: string[] = []
    const publisher = testPublisher((run) => {
      const list = run as OutboxEvent[]
      let acknowledged = 0
      while (list.length > 0 && acknowledged < 3) {
        taken.push(Buffer.from(list.shift()?.payload ?? []).toString())
        acknowledged += 1
      }
      return list.length === 0 ? { acknowledged } : { acknowledged, failure: { kind: 'rejected', cause: 'full' } }
    })
    await using relay = stand.relay({ ...quick, publisher })
    await relay.start()
    await untilPublished(stand, 4)
    expect(taken).toEqual(['1', '2', '3', '4'])
    expect(stand.signals.filter(({ kind }) => kind === 'fault')).toEqual([])
  })

  it('changes the events and their bytes: the next try sees them as they were enqueued', async () => {
    const { stand } = shared
    const large = 'L'.repeat(10_000)
    await stand.enqueue({ payload: 'small', headers: { a: 'b' } }, { payload: large })
    const seen: string[] = []
    let calls = 0
    const publisher = testPublisher((run) => {
      calls += 1
      for (const event of run as { -readonly [K in keyof OutboxEvent]: OutboxEvent[K] }[]) {
        seen.push(
          `${event.topic} ${event.key ?? ''} ${JSON.stringify(event.headers)} ${Buffer.from(event.payload ?? []).toString()}`,
        )
        event.payload?.fill(0)
        Object.assign(event, {
          id: '0',
          eventId: 'x',
          topic: '',
          key: null,
          attempt: NaN,
          headers: null,
          payload: null,
        })
      }
      return calls < 3
        ? { acknowledged: 0, failure: { kind: 'rejected', cause: 'again' } }
        : { acknowledged: run.length }
    })
    await using relay = stand.relay({ ...quick, publisher })
    await relay.start()
    await untilPublished(stand, 2)
    const once = [`orders k {"a":"b"} small`, `orders k {} ${large}`]
    expect(seen).toEqual([...once, ...once, ...once])
  })
})

describe('what a publisher says about an event', () => {
  it.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['a number', 7],
    ['a promise', Promise.resolve('orders')],
  ])('destination: %s ends that event alone, with a text', async (_, destination) => {
    const { stand } = shared
    changes = { destination: ({ key, topic }) => (key === 'lost' ? (destination as string) : topic) }
    await stand.enqueue({ key: 'lost', payload: 'lost' }, { key: 'found', payload: 'found' })
    await using relay = stand.relay(quick)
    await relay.start()
    await stand.signal(({ kind }) => kind === 'failed')
    await stand.deliveries(1)
    await relay.drain()
    const { rows } = await stand.pool.query("select last_error from outbox.events where status = 'failed'")
    expect(rows).toEqual([{ last_error: expect.stringContaining('cannot say where event') as string }])
    expect(stand.delivered).toEqual(['found'])
  })

  it.each<[string, unknown]>([
    ['null', null],
    ['false', false],
    ['true', true],
    ['a text', 'fine'],
    ['an object without a reason', {}],
    ['a promise', Promise.resolve(undefined)],
  ])('validate: %s is no reason, and the event goes to the broker', async (_, answer) => {
    const { stand } = shared
    changes = { validate: () => answer as undefined }
    await stand.enqueue({ payload: '1' }, { payload: '2' })
    await stand.relay(quick).drain()
    expect(stand.delivered).toEqual(['1', '2'])
    expect(await stand.states()).toEqual({ published: 2 })
  })
})

describe('a connection to the broker', () => {
  it('that fails in every way is tried again for ever', async () => {
    const ways: (() => Promise<void>)[] = [
      () => hostile(),
      () => rejecting(hostile()),
      () => rejecting(undefined),
      (): never => {
        throw new Error('at once')
      },
      () => undefined as unknown as Promise<void>,
    ]
    let connects = 0
    await using stand = await relayStand(undefined, {
      connect: () => (ways[connects++] ?? (() => Promise.resolve()))(),
      close: () => hostile(),
    })
    await stand.enqueue({ payload: '1' })
    const relay = stand.relay(quick)
    await relay.start()
    expect(await stand.deliveries(1)).toEqual(['1'])
    await relay.stop()
    expect(connects).toBe(5)
    expect(await stand.states()).toEqual({ published: 1 })
    expect(unhandled).toEqual([])
  })
})
