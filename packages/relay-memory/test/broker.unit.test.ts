import { randomUUID } from 'node:crypto'
import { OutboxError, type OutboxEvent } from '@inorder/core'
import { describe, expect, test } from 'vitest'
import { type MemoryBroker, type MemoryBrokerOptions, memoryBroker, memoryPublisher } from '../src/index.ts'

function event(part: Partial<OutboxEvent> = {}): OutboxEvent {
  return {
    id: '1',
    eventId: randomUUID(),
    topic: 'orders',
    key: 'a',
    type: null,
    payload: Buffer.from('{}'),
    contentType: 'application/json',
    headers: {},
    attempt: 1,
    requeues: 0,
    createdAt: new Date(),
    ...part,
  }
}

async function connected(options: MemoryBrokerOptions = {}) {
  const broker = memoryBroker(options)
  const publisher = memoryPublisher(broker)
  await publisher.connect(AbortSignal.timeout(1000))
  const publish = (...run: OutboxEvent[]) => publisher.publish(run, AbortSignal.timeout(1000))
  return { broker, publisher, publish }
}

const keys = (broker: MemoryBroker) => broker.deliveries.map(({ key }) => key)

test('a delivery is the event with where, when and by whom', async () => {
  const { broker, publish } = await connected()
  const sent = event({ headers: { a: '1' } })
  await publish(sent)
  const { at, ...rest } = broker.deliveries[0] ?? { at: -1 }
  expect(rest).toEqual({ ...sent, seq: 1, destination: 'orders', publisher: 'memory' })
  expect(at).toBeLessThanOrEqual(performance.now())
})

test('several publishers share one broker, and each is named', async () => {
  const broker = memoryBroker()
  for (const name of ['first', 'second']) {
    const publisher = memoryPublisher(broker, { name })
    await publisher.connect(AbortSignal.timeout(1000))
    await publisher.publish([event()], AbortSignal.timeout(1000))
  }
  expect(broker.to('orders').map(({ publisher, seq }) => [publisher, seq])).toEqual([
    ['first', 1],
    ['second', 2],
  ])
})

test('reject refuses so many events and turns itself off', async () => {
  const { broker, publish } = await connected()
  const fault = broker.reject({ key: 'b' }, { times: 2, as: 'permanent', retryAfterMs: 50 })
  const run = [event(), event({ key: 'b' }), event({ key: 'c' })]
  expect(await publish(...run)).toMatchObject({ acknowledged: 1, failure: { kind: 'permanent', retryAfterMs: 50 } })
  expect(await publish(...run.slice(1))).toMatchObject({ acknowledged: 0 })
  expect(await publish(...run.slice(1))).toEqual({ acknowledged: 2 })
  expect(fault.hits).toBe(2)
  expect(keys(broker)).toEqual(['a', 'b', 'c'])
})

test('an outage of one destination leaves the others alone, one of the whole broker names none', async () => {
  const { broker, publisher, publish } = await connected()
  const fault = broker.unavailable({ destination: 'orders' })
  expect(await publish(event())).toMatchObject({ failure: { kind: 'unavailable', destination: 'orders' } })
  expect(await publish(event({ topic: 'bills' }))).toEqual({ acknowledged: 1 })
  fault.end()
  broker.unavailable()
  const { failure } = await publish(event())
  expect(failure?.kind).toBe('unavailable')
  expect(failure).not.toHaveProperty('destination')
  await expect(publisher.connect(AbortSignal.timeout(1000))).rejects.toThrow('unavailable')
  broker.heal()
  expect(await publish(event())).toEqual({ acknowledged: 1 })
})

describe('hang', () => {
  test('delivers when it ends', async () => {
    const { broker, publish } = await connected()
    const fault = broker.hang({ match: { key: 'a' } })
    const outcome = publish(event())
    expect(await publish(event({ key: 'b' }))).toEqual({ acknowledged: 1 })
    fault.end()
    expect(await outcome).toEqual({ acknowledged: 1 })
    expect(keys(broker)).toEqual(['b', 'a'])
  })

  test.each([
    ['drop', 0],
    ['deliver', 1],
  ] as const)('with %s, a run that was given up on lands %i times', async (afterGiveUp, count) => {
    const { broker, publisher } = await connected()
    const fault = broker.hang({ afterGiveUp })
    const controller = new AbortController()
    const outcome = publisher.publish([event()], controller.signal)
    controller.abort(new Error('Given up'))
    expect(await outcome).toMatchObject({ acknowledged: 0, failure: { kind: 'unknown' } })
    fault.end()
    await Promise.resolve()
    expect(broker.count).toBe(count)
  })
})

test('a lost acknowledgement is delivered, and unknown from the matching event on', async () => {
  const { broker, publish } = await connected()
  broker.loseAcknowledgement({ match: { key: 'b' } })
  const run = [event(), event({ key: 'b' }), event({ key: 'c' })]
  expect(await publish(...run)).toMatchObject({ acknowledged: 1, failure: { kind: 'unknown' } })
  expect(keys(broker)).toEqual(['a', 'b', 'c'])
  expect(await publish(...run)).toEqual({ acknowledged: 3 })
})

test('a run that dies delivers its beginning and is unknown, or throws', async () => {
  const { broker, publish } = await connected()
  broker.dieAfter(1)
  expect(await publish(event(), event())).toMatchObject({ acknowledged: 0, failure: { kind: 'unknown' } })
  broker.dieAfter(1, { as: 'throw' })
  await expect(publish(event(), event())).rejects.toThrow('die')
  expect(broker.count).toBe(2)
})

test('a late acknowledgement comes after the delivery', async () => {
  const { broker, publish } = await connected()
  broker.acknowledgeLate(20)
  const outcome = publish(event())
  await broker.until(({ count }) => count === 1, { signal: AbortSignal.timeout(1000) })
  const [delivery] = broker.deliveries
  await outcome
  // Timers may fire up to a millisecond early.
  expect(performance.now() - (delivery?.at ?? 0)).toBeGreaterThanOrEqual(19)
})

test('latency is per run and per event', async () => {
  const { broker, publish } = await connected()
  broker.setLatency({ perRunMs: 20, perEventMs: 10 })
  const started = performance.now()
  await publish(event(), event(), event())
  expect(performance.now() - started).toBeGreaterThanOrEqual(48)
})

test('until resolves with the delivery that was waited for, and rejects with the reason of its signal', async () => {
  const { broker, publish } = await connected()
  const third = broker.until(({ count }) => count >= 3, { signal: AbortSignal.timeout(1000) })
  await publish(event(), event())
  await publish(event())
  await third
  const reason = new Error('Enough')
  const controller = new AbortController()
  const never = broker.until(() => false, { signal: controller.signal })
  controller.abort(reason)
  await expect(never).rejects.toBe(reason)
})

test('counting keeps nothing, and still calls whoever listens', async () => {
  const heard: number[] = []
  const { broker, publish } = await connected({ recording: 'count', onDelivery: ({ seq }) => heard.push(seq) })
  await publish(event(), event())
  expect([broker.count, broker.countTo('orders'), broker.deliveries.length]).toEqual([2, 2, 0])
  expect(heard).toEqual([1, 2])
})

test('a wrong option or switch is refused with its name and value', () => {
  const broker = memoryBroker()
  const wrong: [string, () => unknown][] = [
    ['recording', () => memoryBroker({ recording: 'some' as 'all' })],
    ['maxRun', () => memoryPublisher(broker, { maxRun: 0 })],
    ['times', () => broker.reject({ key: 'a' }, { times: 0 })],
    ['match', () => broker.reject({ keys: 'a' } as object)],
    ['delivered', () => broker.dieAfter(-1)],
    ['perRunMs', () => broker.setLatency({ perRunMs: NaN })],
  ]
  for (const [path, call] of wrong) {
    let problems: unknown
    try {
      call()
    } catch (error) {
      problems = error instanceof OutboxError ? error.problems.map((problem) => problem.path) : error
    }
    expect(problems).toEqual([path])
  }
})
