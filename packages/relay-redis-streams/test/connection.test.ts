import { exampleEvent as event } from '@inorder/conformance'
import { startProxy, startRedis } from '@inorder/harness'
import type { Publisher } from '@inorder/core'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { redisStreamsPublisher, type RedisStreamsOptions } from '../src/index.ts'
import { eventually, idsOf, observe, publish, publishUntilAcknowledged, run } from './rig.ts'

const server = await startRedis({ appendOnly: true })
const proxy = await startProxy(server.port)
const observer = observe(server.url)
const { redis } = observer
const open: Publisher[] = []

async function connected(options: Partial<RedisStreamsOptions> = {}): Promise<Publisher> {
  const publisher = redisStreamsPublisher({ connection: `redis://127.0.0.1:${String(proxy.port)}`, ...options })
  open.push(publisher)
  await publisher.connect(AbortSignal.timeout(5000))
  return publisher
}

/** Publishes so that the request is at the server, or in a buffer on the way, and is then given up on. */
function giveUp(publisher: Publisher, events: Parameters<Publisher['publish']>[0]) {
  return publish(publisher, events, 100)
}

beforeEach(async () => {
  await redis.flushall()
})

afterEach(async () => {
  await Promise.all(open.splice(0).map((publisher) => publisher.close()))
})

afterAll(async () => {
  await observer[Symbol.asyncDispose]()
  await proxy.close()
  await server.stop()
})

test('lost replies are unknown within the deadline and the fence, and a retry keeps order', async () => {
  const publisher = await connected()
  const events = run(6)
  await publishUntilAcknowledged(publisher, events.slice(0, 2))
  proxy.dropReplies = true
  const started = performance.now()
  const result = await giveUp(publisher, events.slice(2, 4))
  expect(performance.now() - started).toBeLessThan(100 + 500 + 200)
  expect(result).toMatchObject({ acknowledged: 0, failure: { kind: 'unknown' } })
  proxy.dropReplies = false
  proxy.reset()
  await publishUntilAcknowledged(publisher, events.slice(2))
  const [a, b, c, d, e, f] = idsOf(events)
  expect(await observer.eventIds('orders')).toEqual([a, b, c, d, c, d, e, f])
})

test('a connection that dies with replies outstanding is unknown at once, and nothing is sent again by the client', async () => {
  const publisher = await connected()
  proxy.dropReplies = true
  const events = run(3)
  const outcome = publish(publisher, events)
  await eventually('the server has the run', async () => (await redis.xlen('orders')) === 3)
  proxy.dropReplies = false
  proxy.reset()
  expect(await outcome).toMatchObject({ acknowledged: 0, failure: { kind: 'unknown' } })
  await publishUntilAcknowledged(publisher, run(1, { topic: 'barrier' }))
  expect(await observer.eventIds('orders')).toEqual(idsOf(events))
})

test('lost requests are unknown, and a retry delivers each event once and in order', async () => {
  const publisher = await connected()
  proxy.dropRequests = true
  const events = run(4)
  expect(await giveUp(publisher, events.slice(0, 2))).toMatchObject({ acknowledged: 0, failure: { kind: 'unknown' } })
  proxy.dropRequests = false
  proxy.reset()
  await publishUntilAcknowledged(publisher, events)
  expect(await observer.eventIds('orders')).toEqual(idsOf(events))
})

describe('a publish that was given up on', () => {
  /** m1 waits in a buffer; afterwards m1 and m2 are published again by the same relay. */
  async function freezeAndRetry(publisher: Publisher): Promise<{ seen: string[]; m1: string; m2: string }> {
    const [m1, m2] = [event(), event()]
    server.pause()
    const result = await giveUp(publisher, [m1])
    expect(result).toMatchObject({ acknowledged: 0, failure: { kind: 'unknown' } })
    expect(await publish(publisher, [m1])).toMatchObject({ acknowledged: 0, failure: { kind: 'unavailable' } })
    server.resume()
    await publishUntilAcknowledged(publisher, [m1])
    await publishUntilAcknowledged(publisher, [m2])
    await publishUntilAcknowledged(publisher, run(1, { topic: 'barrier' }))
    return { seen: await observer.eventIds('orders'), m1: m1.eventId, m2: m2.eventId }
  }

  test('never lands after its successors when the server was frozen', async () => {
    const publisher = await connected()
    for (let round = 0; round < 5; round++) {
      await redis.flushall()
      const { seen, m1, m2 } = await freezeAndRetry(publisher)
      expect(seen.lastIndexOf(m1)).toBeLessThan(seen.indexOf(m2))
    }
  })

  /** The network holds back m1 longer than it takes to publish m1 and m2 over a new connection. */
  async function holdBackAndRetry(publisher: Publisher): Promise<{ seen: string[]; m1: string; m2: string }> {
    const [m1, m2] = [event(), event()]
    const heldMs = 800
    const started = performance.now()
    const deadline = AbortSignal.timeout(100)
    deadline.addEventListener('abort', () => {
      proxy.delayMs = 0
    })
    proxy.delayMs = heldMs
    expect(await publisher.publish([m1], deadline)).toMatchObject({ acknowledged: 0, failure: { kind: 'unknown' } })
    await publishUntilAcknowledged(publisher, [m1])
    await publishUntilAcknowledged(publisher, [m2])
    expect(performance.now() - started).toBeLessThan(heldMs)
    await eventually('what was held back had time to land', () => performance.now() - started > heldMs + 300)
    return { seen: await observer.eventIds('orders'), m1: m1.eventId, m2: m2.eventId }
  }

  test('never lands after its successors when the network holds it back', async () => {
    const { seen, m1, m2 } = await holdBackAndRetry(await connected())
    expect(seen).toEqual([m1, m2])
  })

  test('lands late without a fence, which shows that the scene is real', async () => {
    const { seen, m1, m2 } = await holdBackAndRetry(await connected({ fence: 'none' }))
    expect(seen).toEqual([m1, m2, m1])
  })

  test('is dropped also when the publisher was closed and connected again', async () => {
    const publisher = await connected()
    const [m1, m2] = [event(), event()]
    server.pause()
    const outcome = publish(publisher, [m1])
    const started = performance.now()
    await publisher.close()
    expect(performance.now() - started).toBeLessThan(1500)
    expect(await outcome).toMatchObject({ acknowledged: 0, failure: { kind: 'unknown' } })
    server.resume()
    await publisher.connect(AbortSignal.timeout(5000))
    await publishUntilAcknowledged(publisher, [m1])
    await publishUntilAcknowledged(publisher, [m2])
    const seen = await observer.eventIds('orders')
    expect(seen.lastIndexOf(m1.eventId)).toBeLessThan(seen.indexOf(m2.eventId))
  })
})

test('the fence kills its own connection only', async () => {
  const [first, second] = [
    await connected({ name: 'first' }),
    await connected({ name: 'second', connection: server.url }),
  ]
  const before = await redis.client('LIST')
  const other = /id=(\d+) .*name=second-/.exec(String(before))?.[1]
  proxy.dropRequests = true
  await giveUp(first, run(1))
  proxy.dropRequests = false
  // The attempt to connect that began meanwhile would otherwise wait for an answer to what was swallowed.
  proxy.reset()
  await publishUntilAcknowledged(first, run(1))
  expect(await publish(second, run(1))).toMatchObject({ acknowledged: 1 })
  expect(String(await redis.client('LIST'))).toContain(`id=${String(other)} `)
})

test('a server that is down at the start refuses connect, and serves after a later one', async () => {
  await server.kill()
  const publisher = redisStreamsPublisher({ connection: server.url })
  open.push(publisher)
  await expect(publisher.connect(AbortSignal.timeout(2000))).rejects.toThrow(/ECONNREFUSED/)
  const refused = event()
  expect(await publish(publisher, [refused])).toMatchObject({ acknowledged: 0, failure: { kind: 'unavailable' } })
  await server.restart()
  await publisher.connect(AbortSignal.timeout(5000))
  const events = run(2)
  await publishUntilAcknowledged(publisher, events)
  // What was refused while the server was down was not queued anywhere.
  expect(await observer.eventIds('orders')).toEqual(idsOf(events))
})

test('a frozen server refuses connect within its signal', async () => {
  server.pause()
  try {
    const publisher = redisStreamsPublisher({ connection: server.url })
    open.push(publisher)
    const started = performance.now()
    await expect(publisher.connect(AbortSignal.timeout(200))).rejects.toThrow()
    expect(performance.now() - started).toBeLessThan(1000)
  } finally {
    server.resume()
  }
})

test('a server killed under load loses nothing that it acknowledged, and order is kept', async () => {
  const publisher = await connected({ connection: server.url })
  const lanes = Array.from({ length: 10 }, (_, lane) => run(200, { key: String(lane) }))
  const work = Promise.all(
    lanes.map(async (events) => {
      for (let at = 0; at < events.length; at += 10)
        await publishUntilAcknowledged(publisher, events.slice(at, at + 10))
    }),
  )
  await eventually('the load is on', async () => (await redis.xlen('orders')) > 200)
  await server.kill()
  await server.restart()
  await work
  await eventually('the observer is back', () =>
    redis.ping().then(
      () => true,
      () => false,
    ),
  )
  const delivered = await observer.read('orders')
  for (const [lane, events] of lanes.entries()) {
    const seen = idsOf(delivered.filter(({ key }) => key === String(lane)))
    expect([...new Set(seen)]).toEqual(idsOf(events))
  }
})

test('publishes in flight at close are settled, and nothing lands afterwards', async () => {
  const publisher = await connected()
  proxy.delayMs = 30
  const lanes = Array.from({ length: 50 }, (_, lane) => run(5, { key: String(lane) }))
  const outcomes = Promise.all(lanes.map((events) => publish(publisher, events)))
  await publisher.close()
  const atClose = await redis.xlen('orders')
  proxy.delayMs = 0
  for (const { acknowledged, failure } of await outcomes) expect([acknowledged, failure?.kind]).toEqual([0, 'unknown'])
  await publisher.connect(AbortSignal.timeout(5000))
  await publishUntilAcknowledged(publisher, run(1, { topic: 'barrier' }))
  expect(await redis.xlen('orders')).toBe(atClose)
})

test('a publish given up on between the two calls for an unknown script is not sent', async () => {
  const publisher = await connected()
  await redis.script('FLUSH')
  proxy.delayMs = 40
  // The first call is answered NOSCRIPT after about 80 ms, when the signal has aborted already.
  const events = run(2)
  const result = await publish(publisher, events, 60)
  proxy.delayMs = 0
  expect(result.acknowledged).toBe(0)
  await publishUntilAcknowledged(publisher, run(1, { topic: 'barrier' }))
  expect(await redis.exists('orders')).toBe(0)
  await publishUntilAcknowledged(publisher, events)
  expect(await observer.eventIds('orders')).toEqual(idsOf(events))
})

test('after close nothing of the publisher is connected', async () => {
  const publisher = await connected({ name: 'leaver' })
  expect(String(await redis.client('LIST'))).toContain('name=leaver-')
  await publisher.close()
  await eventually('the server sees it gone', async () => !String(await redis.client('LIST')).includes('name=leaver-'))
})
