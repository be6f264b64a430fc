import type { Failure } from '@inorder/core'
import { metadataFailure } from './failure.ts'
import type { Session } from './session.ts'

export interface Topics {
  /** How many partitions the keys of a topic are spread over, or why that is not known. */
  partitionsOf(topic: string, signal: AbortSignal): Promise<number | Failure>
  /** Reads it again before anything else is published to it. */
  forget(topic: string): void
  known(): Iterable<string>
  /** How many partitions a topic had that has so many now; undefined when nothing follows from a change. */
  partitionsBefore(topic: string, now: number): number | undefined
}

/** What is known of a topic. */
interface KnownTopic {
  readonly partitions: number
  /** Partitions before somebody added some. */
  readonly before: number | undefined
  readonly readAt: number
}

export interface TopicSettings {
  readonly partitions: number | undefined
  readonly metadataMaxAgeMs: number
}

/** Keeps the numbers of partitions, each read once and then again when it is old, beside what is published meanwhile. */
export function createTopics(
  settings: TopicSettings,
  usable: (signal: AbortSignal) => Promise<Session | undefined>,
  whyNot: () => unknown,
): Topics {
  const topics = new Map<string, KnownTopic>()
  const reading = new Map<string, Promise<number | Failure>>()

  function read(topic: string, signal: AbortSignal): Promise<number | Failure> {
    const running = reading.get(topic) ?? readFresh(topic, signal).finally(() => reading.delete(topic))
    reading.set(topic, running)
    return running
  }

  async function readFresh(topic: string, signal: AbortSignal): Promise<number | Failure> {
    const session = await usable(signal)
    if (session === undefined) return { kind: 'unavailable', cause: whyNot() }
    try {
      const partitions = await session.countPartitions(topic)
      const known = topics.get(topic)
      const before = known === undefined || known.partitions === partitions ? known?.before : known.partitions
      topics.set(topic, { partitions, before, readAt: performance.now() })
      return partitions
    } catch (error) {
      topics.delete(topic)
      return metadataFailure(error, topic)
    }
  }

  return {
    async partitionsOf(topic, signal) {
      const known = topics.get(topic)
      if (known === undefined) {
        const fresh = await read(topic, signal)
        return typeof fresh === 'number' ? (settings.partitions ?? fresh) : fresh
      }
      if (performance.now() - known.readAt > settings.metadataMaxAgeMs) void read(topic, signal)
      return settings.partitions ?? known.partitions
    },
    forget: (topic) => void topics.delete(topic),
    known: () => topics.keys(),
    partitionsBefore(topic, now) {
      if (settings.partitions !== undefined) return undefined
      const known = topics.get(topic)
      return known !== undefined && known.partitions !== now ? known.partitions : known?.before
    },
  }
}
