import { randomUUID } from 'node:crypto'
import { type Handler, handlerPublisher } from '../../src/consume/handler-publisher.ts'
import type { OutboxEvent } from '../../src/contract/event.ts'
import type { Publisher, RunResult } from '../../src/contract/publisher.ts'

/** An event as a relay hands it to a publisher. */
export function event(part: Partial<OutboxEvent> = {}): OutboxEvent {
  return {
    id: '1',
    eventId: randomUUID(),
    topic: 'orders',
    key: 'a',
    type: 'order.placed',
    payload: Buffer.from('{"id":"o-1"}'),
    contentType: 'application/json',
    headers: {},
    attempt: 1,
    requeues: 0,
    createdAt: new Date(),
    ...part,
  }
}

export const never: AbortSignal = new AbortController().signal

export async function connected(publisher: Publisher): Promise<Publisher> {
  await publisher.connect(never)
  return publisher
}

/** What becomes of one event whose handler is this. */
export async function outcome(handler: Handler): Promise<RunResult> {
  const publisher = await connected(handlerPublisher({ 'order.placed': handler }))
  return publisher.publish([event()], never)
}
