import { exampleEvent as event } from '@inorder/conformance'
import { startRedis } from '@inorder/harness'
import { afterEach, describe, expect, test } from 'vitest'
import { redisStreamsPublisher } from '../src/index.ts'
import { eventually, idsOf, observe, publish, publishUntilAcknowledged, run } from './rig.ts'
import { ownRedis } from './own-redis.ts'

const { server, redis, observer, connected } = await ownRedis()

test('a refusal in the middle of a script keeps what came before and nothing behind it', async () => {
  const publisher = await connected()
  // Two ids are left in this stream, so the third event of the run is refused inside the script.
  await redis.xadd('orders', '18446744073709551615-18446744073709551613', 'field', 'value')
  const events = run(5)
  const result = await publish(publisher, events)
  expect(result).toMatchObject({ acknowledged: 2, failure: { kind: 'unavailable', destination: 'orders' } })
  expect(result.receipts?.map(({ position }) => position)).toEqual([
    '18446744073709551615-18446744073709551614',
    '18446744073709551615-18446744073709551615',
  ])
  expect(await redis.xlen('orders')).toBe(3)
})

test('a run over several streams stops at the first that refuses', async () => {
  const publisher = await connected()
  await redis.set('b', 'not a stream')
  const events = ['a', 'a', 'b', 'c'].map((topic) => event({ topic }))
  const result = await publish(publisher, events)
  expect(result).toMatchObject({ acknowledged: 2, failure: { kind: 'unavailable', destination: 'b' } })
  expect(await observer.eventIds('a')).toEqual(idsOf(events.slice(0, 2)))
  expect(await redis.exists('c')).toBe(0)
})

test('a full server is unavailable as a whole, appends nothing, and takes everything in order afterwards', async () => {
  const publisher = await connected()
  const events = run(20)
  await publishUntilAcknowledged(publisher, events.slice(0, 5))
  await redis.config('SET', 'maxmemory', '1mb')
  try {
    const refused = await publish(publisher, events.slice(5))
    expect(refused).toMatchObject({ acknowledged: 0, failure: { kind: 'unavailable' } })
    expect(refused.failure).not.toHaveProperty('destination')
    expect(await redis.xlen('orders')).toBe(5)
  } finally {
    await redis.config('SET', 'maxmemory', '0')
  }
  await publishUntilAcknowledged(publisher, events.slice(5))
  expect(await observer.eventIds('orders')).toEqual(idsOf(events))
})

test('missing replicas are an outage, not an answer about the event', async () => {
  const publisher = await connected()
  await redis.config('SET', 'min-replicas-to-write', '1')
  try {
    const result = await publish(publisher, run(2))
    expect(result).toMatchObject({ acknowledged: 0, failure: { kind: 'unavailable' } })
    expect(result.failure).not.toHaveProperty('destination')
  } finally {
    await redis.config('SET', 'min-replicas-to-write', '0')
  }
})

test('a server busy with a script of somebody else is an outage', async () => {
  const publisher = await connected()
  await redis.config('SET', 'busy-reply-threshold', '1')
  // Ends by itself after two seconds: a server in a script does not even react to SIGTERM.
  const twoSeconds = "local t = redis.call('TIME')[1] + 2 while redis.call('TIME')[1] - t < 0 do end"
  const script = redis.eval(twoSeconds, 0)
  try {
    await eventually('the server is busy', async () => {
      const { failure } = await publish(publisher, run(1, { topic: 'busy' }))
      return (
        failure?.kind === 'unavailable' && failure.destination === undefined && String(failure.cause).includes('BUSY')
      )
    })
  } finally {
    await script
    await redis.config('SET', 'busy-reply-threshold', '5000')
  }
  expect(await publish(publisher, run(1))).toMatchObject({ acknowledged: 1 })
})

test('a script cache that was flushed costs nothing but a second call', async () => {
  const publisher = await connected()
  const events = run(4)
  await publishUntilAcknowledged(publisher, events.slice(0, 2))
  await redis.script('FLUSH')
  expect(await publish(publisher, events.slice(2))).toMatchObject({ acknowledged: 2 })
  expect(await observer.eventIds('orders')).toEqual(idsOf(events))
})

test('a large event is permanent at its place, and what came before is delivered', async () => {
  const publisher = await connected({ maxEventBytes: 10 })
  const events = [event(), event({ payload: Buffer.alloc(11) }), event()]
  expect(await publish(publisher, events)).toMatchObject({ acknowledged: 1, failure: { kind: 'permanent' } })
  expect(await observer.eventIds('orders')).toEqual(idsOf(events.slice(0, 1)))
})

describe('permissions', () => {
  afterEach(async () => {
    await redis.call('ACL', 'DELUSER', 'relay')
  })

  const as = (rules: string[]) => redis.call('ACL', 'SETUSER', 'relay', 'on', '>secret', ...rules)
  const connection = { host: '127.0.0.1', port: server.port, username: 'relay', password: 'secret' }

  test('connect refuses a user who may not kill a stale connection, unless the fence is off', async () => {
    await as(['~*', '+@all', '-client|kill'])
    await expect(connected({ connection })).rejects.toThrow(/NOPERM/)
    const publisher = await connected({ connection, fence: 'none' })
    expect(publisher.capabilities.fence).toBe('none')
    expect(await publish(publisher, run(1))).toMatchObject({ acknowledged: 1 })
  })

  test('connect refuses a user whose connections have no name, because the fence knows them by it', async () => {
    await as(['~*', '+@all', '-client|setname'])
    await expect(connected({ connection })).rejects.toThrow(/CLIENT SETNAME/)
  })

  test('a stream that the user may not write is unavailable by itself', async () => {
    await as(['~orders', '+@all'])
    const publisher = await connected({ connection })
    expect(await publish(publisher, run(1))).toMatchObject({ acknowledged: 1 })
    const refused = await publish(publisher, run(1, { topic: 'secrets' }))
    expect(refused).toMatchObject({ acknowledged: 0, failure: { kind: 'unavailable', destination: 'secrets' } })
  })

  test('a user who may not append is an outage', async () => {
    await as(['~*', '+@all', '-xadd'])
    const publisher = await connected({ connection })
    expect(await publish(publisher, run(1))).toMatchObject({ acknowledged: 0, failure: { kind: 'unavailable' } })
  })

  test('a wrong password is refused at connect, with the reply of the server', async () => {
    await as(['~*', '+@all'])
    await expect(connected({ connection: { ...connection, password: 'wrong' } })).rejects.toThrow(/WRONGPASS/)
  })

  test('credentials that are withdrawn while running are an outage that ends when they are back', async () => {
    await as(['~*', '+@all'])
    const publisher = await connected({ connection })
    // Deleting a user also ends its connections.
    await redis.call('ACL', 'DELUSER', 'relay')
    await eventually('the publisher notices', async () => {
      const { failure } = await publish(publisher, run(1, { topic: 'probe' }))
      return failure?.kind === 'unavailable' && String(failure.cause).includes('WRONGPASS')
    })
    await as(['~*', '+@all'])
    await publishUntilAcknowledged(publisher, run(1))
  })
})

test('a server without the password refuses connect', async () => {
  await using guarded = await startRedis({ config: { requirepass: 'secret' } })
  const publisher = redisStreamsPublisher({ connection: guarded.url })
  await expect(publisher.connect(AbortSignal.timeout(5000))).rejects.toThrow(/NOAUTH/)
  await publisher.close()
})

test('a replica is unavailable until it is promoted', async () => {
  await using replica = await startRedis({ replicaOf: server.port })
  await using beside = observe(replica.url)
  await eventually('the replica is in sync', async () =>
    (await beside.redis.info('replication')).includes('master_link_status:up'),
  )
  const publisher = redisStreamsPublisher({ connection: replica.url })
  await publisher.connect(AbortSignal.timeout(5000))
  try {
    expect(await publisher.check()).toMatchObject({ ok: false })
    const events = run(3)
    const refused = await publish(publisher, events)
    expect(refused).toMatchObject({ acknowledged: 0, failure: { kind: 'unavailable' } })
    expect(String(refused.failure?.cause)).toContain('READONLY')
    await beside.redis.replicaof('NO', 'ONE')
    await publishUntilAcknowledged(publisher, events)
    expect(await beside.eventIds('orders')).toEqual(idsOf(events))
  } finally {
    await publisher.close()
  }
})

describe('waitReplicas', () => {
  test('acknowledges what the replica has', async () => {
    await using replica = await startRedis({ replicaOf: server.port })
    await using beside = observe(replica.url)
    await eventually('the replica is in sync', async () =>
      (await beside.redis.info('replication')).includes('master_link_status:up'),
    )
    const publisher = await connected({ waitReplicas: { count: 1, timeoutMs: 2000 } })
    expect(publisher.capabilities.confirms).toBe('durable')
    const lanes = Array.from({ length: 20 }, (_, lane) => run(5, { key: String(lane) }))
    const results = await Promise.all(lanes.map((events) => publish(publisher, events)))
    expect(results.map(({ acknowledged }) => acknowledged)).toEqual(lanes.map(() => 5))
    expect(await beside.redis.xlen('orders')).toBe(100)
  })

  test('a replica that is missing makes the outcome unknown', async () => {
    const publisher = await connected({ waitReplicas: { count: 1, timeoutMs: 50 } })
    expect(await publish(publisher, run(2))).toMatchObject({ acknowledged: 0, failure: { kind: 'unknown' } })
    expect((await publisher.check()).ok).toBe(false)
  })
})
