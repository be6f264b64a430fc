import { once } from 'node:events'
import type { OutboxEvent, Publisher, PublisherCapabilities, RunResult } from '@inorder/core'

export interface PublishRequest {
  readonly kind: 'publish'
  readonly call: number
  readonly run: readonly OutboxEvent[]
}

export interface PublishReply {
  readonly kind: 'published'
  readonly call: number
  readonly result: RunResult
}

export interface RemotePublisher extends Publisher {
  /** Takes the broker's answer to an earlier call. */
  answer(reply: PublishReply): void
}

const capabilities: PublisherCapabilities = {
  maxEventBytes: 64 * 1024 * 1024,
  maxRun: 1000,
  order: 'total',
  dedupe: { by: 'none', windowMs: 0 },
  // One channel carries all calls of a relay in their order, so a late run cannot land after its successors.
  fence: 'same-relay',
  tombstones: true,
  headers: true,
  confirms: 'memory',
}

/**
 * Publishes to a broker at the other end of a channel: what relays in several processes or threads need to share one
 * in-process broker, whose deliveries then have one order.
 */
export function remotePublisher(name: string, send: (request: PublishRequest) => void): RemotePublisher {
  const waiting = new Map<number, (result: RunResult) => void>()
  let calls = 0
  return {
    name,
    capabilities,
    connect: () => Promise.resolve(),
    destination: ({ topic }) => topic,
    async publish(run, signal) {
      const call = ++calls
      const answered = new Promise<RunResult>((resolve) => waiting.set(call, resolve))
      const gaveUp = once(signal, 'abort').then(
        (): RunResult => ({ acknowledged: 0, failure: { kind: 'unknown', cause: signal.reason } }),
      )
      send({ kind: 'publish', call, run })
      const result = await Promise.race([answered, gaveUp])
      waiting.delete(call)
      return result
    },
    answer({ call, result }) {
      waiting.get(call)?.(result)
    },
    check: () => Promise.resolve({ ok: true, findings: [] }),
    close: () => Promise.resolve(),
  }
}
