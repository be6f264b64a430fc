import type { RelayOptions } from '@inorder/core'
import { memoryBroker, memoryPublisher, type MemoryBroker } from '@inorder/relay-memory'
import type { Relay } from '@inorder/core'
import { openOutbox } from './server.ts'

export const eventsPerSecond = 300
export const keys = 1000
/** The relay's first finds, and code that has yet to be compiled, are not counted. */
const warmUpSeconds = 2

export interface Traffic {
  readonly seconds: number
  readonly relay: Partial<RelayOptions>
  /** Whether the writer wakes the relay after its commit. */
  readonly wakes: boolean
  /** Makes the broker fail before the first event comes. */
  readonly spoil?: (broker: MemoryBroker) => void
  /** One more event at the start, for a key that the others do not use. */
  readonly extraKey?: string
}

export interface TrafficResult {
  /** Commit to acknowledgement of each event that arrived, in ms. */
  readonly latencies: readonly number[]
  readonly committed: number
}

/** Steady traffic, with the relay in this process next to the writer, so that both clocks are one. */
export async function runTraffic(url: string, traffic: Traffic): Promise<TrafficResult> {
  const { seconds } = traffic
  await using under = await openOutbox(url)
  const { pool, outbox } = under
  const committedAt = new Map<string, number>()
  const arrivedAt = new Map<string, number>()
  const broker = memoryBroker({
    recording: 'count',
    onDelivery: ({ eventId, at }) => arrivedAt.set(eventId, at),
  })
  traffic.spoil?.(broker)
  const relay = outbox.relay({ publisher: memoryPublisher(broker), ...traffic.relay })
  await relay.start()
  const { extraKey } = traffic
  if (extraKey !== undefined)
    await outbox.transaction(pool, (tx) => outbox.enqueue(tx, { topic: 'orders', key: extraKey, payload: {} }))
  const warmUp = warmUpSeconds * eventsPerSecond
  const write = async (number: number): Promise<void> => {
    const event = { topic: 'orders', key: `key-${number % keys}`, payload: { number } }
    const client = await pool.connect()
    try {
      await client.query('begin')
      const { eventId } = await outbox.enqueue(client, event)
      await client.query('commit')
      if (number >= warmUp) committedAt.set(eventId, performance.now())
    } finally {
      client.release()
    }
    if (traffic.wakes) outbox.wake()
  }
  const writes: Promise<void>[] = []
  const began = performance.now()
  for (let number = 0; number < warmUp + eventsPerSecond * seconds; number++) {
    // By the clock and not by a pause each, because a timer of 1 ms takes longer.
    const due = began + (number * 1000) / eventsPerSecond
    if (due > performance.now()) await new Promise((resolve) => setTimeout(resolve, due - performance.now()))
    writes.push(write(number))
  }
  await Promise.all(writes)
  await settled(relay, warmUp + committedAt.size)
  await relay.stop()
  // An event can arrive before its writer has heard of its commit: that is no negative time but none.
  const latencies = [...committedAt].flatMap(([eventId, at]) => {
    const arrived = arrivedAt.get(eventId)
    return arrived === undefined ? [] : [Math.max(0, arrived - at)]
  })
  return { latencies, committed: committedAt.size }
}

async function settled(relay: Relay, events: number): Promise<void> {
  const until = performance.now() + 10_000
  while (relay.counts().published < events && performance.now() < until) await relay.drain()
}
