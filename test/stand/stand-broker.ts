import { startRedis } from '@inorder/harness'
import { memoryBroker, memoryPublisher } from '@inorder/relay-memory'
import { decodeEntry } from '@inorder/relay-redis-streams'
import { Redis } from 'ioredis'
import type { Arrival } from './explain.ts'
import { relayHeader } from './faulty-publisher.ts'
import type { PublishReply, PublishRequest } from './remote-publisher.ts'

/** The broker of a stand, as its relays reach it and as it is read at the end. */
export interface StandBroker extends AsyncDisposable {
  /** Where relays connect; undefined when they send `publish` messages instead. */
  readonly url: string | undefined
  /** Publishes what a relay sent. Runs of different relays get one order here. */
  publish(relay: string, request: PublishRequest): Promise<PublishReply>
  /** Everything it has, in the order of arrival of each key. */
  read(): Promise<Arrival[]>
}

export function memoryStandBroker(): StandBroker {
  const broker = memoryBroker()
  const publisher = memoryPublisher(broker)
  const { signal } = new AbortController()
  const connected = publisher.connect(signal)
  return {
    url: undefined,
    async publish(_relay, { call, run }) {
      await connected
      return { kind: 'published', call, result: await publisher.publish(run, signal) }
    },
    read: async () => broker.deliveries.map(({ eventId, headers }) => ({ eventId, relay: headers[relayHeader] ?? '' })),
    [Symbol.asyncDispose]: () => publisher.close(),
  }
}

export async function redisStandBroker(): Promise<StandBroker> {
  const server = await startRedis()
  return {
    url: server.url,
    publish: () => Promise.reject(new Error('Relays publish to Redis themselves')),
    async read() {
      const redis = new Redis(server.url)
      try {
        const arrivals: Arrival[] = []
        // A key has one topic and a topic one stream, so each key's order is the order within a stream.
        for (const stream of await redis.keys('*')) {
          for (const [, fields] of await redis.xrangeBuffer(stream, '-', '+')) {
            const { eventId, headers } = decodeEntry(fields)
            arrivals.push({ eventId, relay: headers[relayHeader] ?? '' })
          }
        }
        return arrivals
      } finally {
        redis.disconnect()
      }
    },
    [Symbol.asyncDispose]: () => server.stop(),
  }
}
