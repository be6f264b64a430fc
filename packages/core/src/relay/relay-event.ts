import type { OutboxEvent } from '../contract/event.ts'
import type { SignalEvent } from '../contract/signals.ts'
import type { EventRow } from '../storage/event-row.ts'

/** The event of a row as its publisher sees it. */
export function toEvent(row: EventRow, payload: Uint8Array | null = row.payload): OutboxEvent {
  return {
    id: row.id,
    eventId: row.eventId,
    topic: row.topic,
    key: row.key,
    type: row.type,
    payload,
    contentType: row.contentType,
    headers: readHeaders(row.headers),
    attempt: row.attempts + 1,
    requeues: row.requeues,
    createdAt: new Date(row.createdAtMs),
  }
}

export function toSignalEvent({ id, eventId, topic, key, attempts }: EventRow): SignalEvent {
  return { id, eventId, topic, key, attempts }
}

/** The table takes nothing but text as a header value. */
function readHeaders(json: string): Record<string, string> {
  return json === '{}' ? {} : (JSON.parse(json) as Record<string, string>)
}
