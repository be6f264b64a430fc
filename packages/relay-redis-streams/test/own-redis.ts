import { type RedisServer, startRedis } from '@inorder/harness'
import type { Publisher } from '@inorder/core'
import type { Redis } from 'ioredis'
import { afterAll, afterEach, beforeEach } from 'vitest'
import { redisStreamsPublisher, type RedisStreamsOptions } from '../src/index.ts'
import { observe } from './rig.ts'

/** A Redis of a test file's own: emptied before each test, whose publishers are closed after it. */
export interface OwnRedis {
  readonly server: RedisServer
  /** A client beside the publisher, to look and to prepare. */
  readonly redis: Redis
  readonly observer: ReturnType<typeof observe>
  /** What is closed after the test. */
  readonly open: { readonly close: () => Promise<void> }[]
  readonly connected: (options?: Partial<RedisStreamsOptions>) => Promise<Publisher>
}

export async function ownRedis(): Promise<OwnRedis> {
  const server = await startRedis()
  const observer = observe(server.url)
  const open: { readonly close: () => Promise<void> }[] = []
  beforeEach(async () => {
    await observer.redis.flushall()
  })
  afterEach(async () => {
    await Promise.all(open.splice(0).map((one) => one.close()))
  })
  afterAll(async () => {
    await observer[Symbol.asyncDispose]()
    await server.stop()
  })
  return {
    server,
    redis: observer.redis,
    observer,
    open,
    async connected(options = {}) {
      const publisher = redisStreamsPublisher({ connection: server.url, ...options })
      open.push(publisher)
      await publisher.connect(AbortSignal.timeout(5000))
      return publisher
    },
  }
}
