import { OutboxError } from '@inorder/core'
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { redisStreamsPublisher, type RedisStreamsOptions } from '../src/index.ts'

const url = 'redis://localhost:6379'

function refusal(options: object): OutboxError {
  try {
    redisStreamsPublisher(options as RedisStreamsOptions)
  } catch (error) {
    if (error instanceof OutboxError) return error
    throw error
  }
  throw new Error('The options were taken')
}

test('everything that is wrong is said in one error, with the option and its value', () => {
  const error = refusal({
    connection: url,
    shards: 0,
    maxRun: 1001,
    fence: 'maybe',
    trim: { maxLength: 0 },
    retries: 3,
  })
  expect(error.code).toBe('OPTIONS_INVALID')
  expect(error.problems.map(({ path }) => path)).toEqual(['shards', 'maxRun', 'fence', 'trim', 'retries'])
  for (const part of ['got 0', 'got 1001', "got 'maybe'", 'maxLength', 'retries is not an option']) {
    expect(error.message).toContain(part)
  }
})

test.each<[string, object]>([
  ['connection', {}],
  ['connection', { connection: 6379 }],
  ['connection', { connection: 'localhost:6379' }],
  ['connection', { connection: `${url}?enableOfflineQueue=true` }],
  ['name', { connection: url, name: 'two words' }],
  ['stream', { connection: url, stream: 'orders' }],
  ['trim', { connection: url, trim: {} }],
  ['trim', { connection: url, trim: { maxLength: 10, olderThanMs: 10 } }],
  ['trim', { connection: url, trim: { maxLength: 10, approximate: 'yes' } }],
  ['waitReplicas', { connection: url, waitReplicas: { count: 1 } }],
  ['waitReplicas', { connection: url, waitReplicas: 1 }],
  ['fenceTimeoutMs', { connection: url, fenceTimeoutMs: Infinity }],
  ['maxEventBytes', { connection: url, maxEventBytes: 2 ** 30 }],
])('%s is refused in %j', (path, options) => {
  expect(refusal(options).problems.map((problem) => problem.path)).toEqual([path])
})

test('a password is never part of a message', () => {
  expect(refusal({ connection: 'redis:/user:hunter2@host' }).message).not.toContain('hunter2')
  expect(refusal({ connection: 'redis://user:hunter2@host:99999999' }).message).not.toContain('hunter2')
})

describe('options of ioredis', () => {
  test.each<[string, object]>([
    ['maxRetriesPerRequest', { maxRetriesPerRequest: 20 }],
    ['enableOfflineQueue', { enableOfflineQueue: true }],
    ['autoResendUnfulfilledCommands', { autoResendUnfulfilledCommands: false }],
    ['enableAutoPipelining', { enableAutoPipelining: true }],
    ['keyPrefix', { keyPrefix: 'shop:' }],
    ['readOnly', { readOnly: true }],
    ['role', { sentinels: [], name: 'main', role: 'slave' }],
    ['retryStrategy', { retryStrategy: () => 10 }],
    ['reconnectOnError', { reconnectOnError: () => 2 }],
    ['commandTimeout', { commandTimeout: 100 }],
    ['hostname', { hostname: 'redis' }],
  ])('%s is refused, because it changes order or delivery or is unknown', (name, connection) => {
    expect(refusal({ connection }).problems.map(({ path }) => path)).toEqual([`connection.${name}`])
  })

  test('what says where to connect and as whom is taken, and so are safe values', () => {
    redisStreamsPublisher({
      connection: { host: 'redis', port: 6380, username: 'relay', password: 'x', db: 2, tls: {} },
    })
    redisStreamsPublisher({ connection: { sentinels: [{ host: 'a', port: 26379 }], name: 'main', role: 'master' } })
    redisStreamsPublisher({ connection: { maxRetriesPerRequest: 0, enableOfflineQueue: false } })
    redisStreamsPublisher({ connection: '/run/redis.sock' })
  })

  test('a client with a key prefix is refused, one with the defaults of ioredis is not', () => {
    const plain = new Redis({ lazyConnect: true })
    const prefixed = new Redis({ lazyConnect: true, keyPrefix: 'shop:' })
    redisStreamsPublisher({ connection: plain })
    expect(refusal({ connection: prefixed }).problems.map(({ path }) => path)).toEqual(['connection.keyPrefix'])
  })

  test('a cluster client is refused', () => {
    const cluster = new Redis.Cluster([{ host: 'localhost', port: 7000 }], { lazyConnect: true })
    expect(refusal({ connection: cluster }).message).toContain('cluster')
  })
})

test('capabilities say what the options make true', () => {
  const plain = redisStreamsPublisher({ connection: url }).capabilities
  expect(plain).toEqual({
    maxEventBytes: 64 * 1024 * 1024,
    maxRun: 1000,
    order: 'total',
    dedupe: { by: 'none', windowMs: 0 },
    fence: 'same-relay',
    tombstones: true,
    headers: true,
    confirms: 'memory',
  })
  const other = redisStreamsPublisher({
    connection: url,
    shards: 4,
    fence: 'none',
    waitReplicas: { count: 1, timeoutMs: 100 },
  }).capabilities
  expect([other.order, other.fence, other.confirms]).toEqual(['key', 'none', 'durable'])
})
