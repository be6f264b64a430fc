import { randomUUID } from 'node:crypto'
import type { OutboxEvent } from '@inorder/core'

/** An event with a new event id and something in every field, for tests of a publisher. `part` overrides anything. */
export function exampleEvent(part: Partial<OutboxEvent> = {}): OutboxEvent {
  return {
    id: '1',
    eventId: randomUUID(),
    topic: 'orders',
    key: 'key-1',
    type: 'order.placed',
    payload: Buffer.from('{}'),
    contentType: 'application/json',
    headers: {},
    attempt: 1,
    requeues: 0,
    createdAt: new Date(),
    ...part,
  }
}
