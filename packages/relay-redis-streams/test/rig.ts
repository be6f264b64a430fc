import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { exampleEvent } from '@inorder/conformance'
import type { OutboxEvent, Publisher, RunResult } from '@inorder/core'
import { Redis } from 'ioredis'
import { decodeEntry, type StreamEntry } from '../src/index.ts'

export function run(length: number, part: Partial<OutboxEvent> = {}): OutboxEvent[] {
  return Array.from({ length }, () => exampleEvent(part))
}

export function idsOf(events: readonly { readonly eventId: string }[]): string[] {
  return events.map(({ eventId }) => eventId)
}

/** Publishes with the deadline of a relay, or a shorter one. */
export function publish(publisher: Publisher, events: readonly OutboxEvent[], deadlineMs = 5000): Promise<RunResult> {
  return publisher.publish(events, AbortSignal.timeout(deadlineMs))
}

/** Publishes what is not acknowledged until everything is, as a relay would, and returns the failures on the way. */
export async function publishUntilAcknowledged(
  publisher: Publisher,
  events: readonly OutboxEvent[],
): Promise<string[]> {
  const deadline = performance.now() + 10_000
  const failures: string[] = []
  for (let rest = events; ; ) {
    const { acknowledged, failure } = await publish(publisher, rest)
    rest = rest.slice(acknowledged)
    if (rest.length === 0) return failures
    failures.push(failure?.kind ?? 'none')
    if (performance.now() > deadline)
      throw new Error(`Not acknowledged: ${String(failure?.kind)} ${String(failure?.cause)}`)
    await delay(10)
  }
}

/** Asks until the answer is yes. For states of a server that nothing signals. */
export async function eventually(what: string, ask: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = performance.now() + 10_000
  while (!(await ask())) {
    if (performance.now() > deadline) throw new Error(`Did not happen: ${what}`)
    await delay(10)
  }
}

/** A plain client beside the publisher, to look at the server and to change it. */
export interface Observer extends AsyncDisposable {
  readonly redis: Redis
  read(stream: string): Promise<StreamEntry[]>
  eventIds(stream: string): Promise<string[]>
}

export function observe(url: string): Observer {
  const redis = new Redis(url)
  redis.on('error', () => undefined)
  const read = async (stream: string): Promise<StreamEntry[]> =>
    (await redis.xrangeBuffer(stream, '-', '+')).map(([, fields]) => decodeEntry(fields))
  return {
    redis,
    read,
    eventIds: async (stream) => idsOf(await read(stream)),
    async [Symbol.asyncDispose]() {
      if (redis.status === 'end') return
      redis.disconnect()
      await once(redis, 'end')
    },
  }
}
