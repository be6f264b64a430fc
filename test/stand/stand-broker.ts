import type { RedisServer } from '@inorder/harness'
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

/** A broker in this process that acknowledges what it has after so many ms. */
export function memoryStandBroker(acknowledgeAfterMs = 0): StandBroker {
  const broker = memoryBroker()
  if (acknowledgeAfterMs > 0) broker.acknowledgeLate(acknowledgeAfterMs)
  const publisher = memoryPublisher(broker)
  const connected = publisher.connect(endless())
  return {
    url: undefined,
    async publish(_relay, { call, run }) {
      await connected
      return { kind: 'published', call, result: await publisher.publish(run, endless()) }
    },
    read: async () =>
      broker.deliveries.map(({ eventId, headers, at }) => ({
        eventId,
        relay: headers[relayHeader] ?? '',
        at: microseconds(performance.timeOrigin + at),
      })),
    [Symbol.asyncDispose]: () => publisher.close(),
  }
}

/** A Redis that relays reach at another address than its own when `url` gives one. */
export function redisStandBroker(server: RedisServer, url: string = server.url): StandBroker {
  return {
    url,
    publish: () => Promise.reject(new Error('Relays publish to Redis themselves')),
    async read() {
      const redis = new Redis(server.url)
      try {
        const arrivals: Arrival[] = []
        // A key has one topic and a topic one stream, so each key's order is the order within a stream.
        for (const stream of await redis.keys('*')) {
          for (const [id, fields] of await redis.xrangeBuffer(stream, '-', '+')) {
            const { eventId, headers } = decodeEntry(fields)
            // An entry's id begins with the milliseconds of the server's clock.
            const at = microseconds(Number.parseInt(id.toString(), 10))
            arrivals.push({ eventId, relay: headers[relayHeader] ?? '', at })
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

/** A signal of its own for each call: what listens to one for ever is taken for a leak. */
function endless(): AbortSignal {
  return new AbortController().signal
}

function microseconds(ms: number): bigint {
  return BigInt(Math.round(ms * 1000))
}
