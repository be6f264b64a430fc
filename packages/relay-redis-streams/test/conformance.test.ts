import { conformanceCases } from '@inorder/conformance'
import { startProxy, startRedis } from '@inorder/harness'
import { afterAll, describe, expect, test } from 'vitest'
import { redisStreamsPublisher } from '../src/index.ts'
import { observe } from './rig.ts'

const server = await startRedis()
const proxy = await startProxy(server.port)
const observer = observe(server.url)

afterAll(async () => {
  await observer[Symbol.asyncDispose]()
  await proxy.close()
  await server.stop()
})

describe.each<[string, { shards?: number }]>([
  ['one stream per topic', {}],
  ['eight shards', { shards: 8 }],
])('redisStreamsPublisher keeps the publish contract with %s', (_, options) => {
  const cases = conformanceCases({
    createPublisher: () =>
      redisStreamsPublisher({
        connection: `redis://127.0.0.1:${String(proxy.port)}`,
        maxEventBytes: 2_000_000,
        ...options,
      }),
    // Port 1 is reserved and nothing listens there.
    createUnreachablePublisher: () => redisStreamsPublisher({ connection: 'redis://127.0.0.1:1', ...options }),
    // A poisoned stream is a string, which has no entries.
    read: async (stream) => ((await observer.redis.type(stream)) === 'stream' ? observer.read(stream) : []),
    async poison(event) {
      const topic = `${event.topic}-of-another-type`
      const streams =
        options.shards === undefined ? [topic] : Array.from({ length: 8 }, (__, shard) => `{${topic}:${String(shard)}}`)
      for (const stream of streams) await observer.redis.set(stream, 'not a stream')
      return { ...event, topic }
    },
    loseAcknowledgements() {
      proxy.dropReplies = true
      return () => {
        proxy.dropReplies = false
        proxy.reset()
      }
    },
    stall() {
      server.pause()
      return () => {
        server.resume()
      }
    },
  })

  for (const { name, run } of cases) test(name, run)

  test('no case is skipped', () => {
    expect(cases.flatMap(({ name, skipped }) => (skipped === undefined ? [] : [`${name}: ${skipped}`]))).toEqual([])
  })
})
