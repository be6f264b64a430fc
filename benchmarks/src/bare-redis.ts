import { randomUUID } from 'node:crypto'
import type { OutboxEvent } from '@inorder/core'
import { Redis } from 'ioredis'
import { appendArguments, appendScript } from '../../packages/relay-redis-streams/src/record.ts'

/**
 * The ceiling of the client: the same script, the same runs and as many events in flight as a relay has, with nothing
 * around it. The arguments are made beforehand, so that only ioredis and Redis are measured.
 */
export async function appendBarely(
  url: string,
  stream: string,
  runs: readonly number[],
  options: { readonly payloadBytes: number; readonly inFlight: number },
): Promise<{ events: number; seconds: number }> {
  const redis = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0, enableOfflineQueue: false })
  await redis.connect()
  try {
    const hash = String(await redis.script('LOAD', appendScript))
    let number = 0
    const calls = runs.map((length) => ({
      length,
      values: appendArguments(
        Array.from({ length }, () => eventOf(++number, options.payloadBytes)),
        undefined,
      ),
    }))
    const began = performance.now()
    await new Promise<void>((resolve, reject) => {
      let next = 0
      let flying = 0
      let answered = 0
      const send = (): void => {
        for (let call = calls[next]; call !== undefined && flying < options.inFlight; call = calls[next]) {
          const { length, values } = call
          next += 1
          flying += length
          redis.evalsha(hash, 1, stream, ...values).then(() => {
            flying -= length
            answered += 1
            if (answered === calls.length) resolve()
            else send()
          }, reject)
        }
      }
      send()
    })
    return { events: number, seconds: (performance.now() - began) / 1000 }
  } finally {
    redis.disconnect()
  }
}

function eventOf(number: number, payloadBytes: number): OutboxEvent {
  return {
    id: String(number),
    eventId: randomUUID(),
    topic: 'orders',
    key: `key-${number}`,
    type: null,
    payload: Buffer.alloc(payloadBytes, '{'),
    contentType: 'application/json',
    headers: {},
    attempt: 1,
    requeues: 0,
    createdAt: new Date(),
  }
}
