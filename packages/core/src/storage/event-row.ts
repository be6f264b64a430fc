import type { Row } from '../contract/sql-client.ts'

/** An event in line, as find and sweep return it. */
export interface EventRow {
  readonly id: string
  readonly eventId: string
  readonly topic: string
  readonly key: string | null
  readonly type: string | null
  readonly contentType: string
  readonly headers: string
  readonly attempts: number
  readonly requeues: number
  readonly createdAtMs: number
  readonly readyAtMs: number
  /** Bytes of the payload; null is a tombstone. */
  readonly size: number | null
  /** Absent when the payload is too large to come along and has to be loaded. */
  readonly payload: Uint8Array | null
}

/** Payloads up to this many bytes come with the row, larger ones are loaded under the byte budget afterwards. */
const inlinePayloadBytes = 4096

/** The columns of an `EventRow` in the order `readEventRow` expects them; `e` is the event. */
export const eventRowColumns: string = `e.id, e.event_id, e.topic, e.key, e.type, e.content_type, e.headers, e.attempts, e.requeues,
      (extract(epoch from e.created_at) * 1000)::float8, (extract(epoch from e.ready_at) * 1000)::float8, octet_length(e.payload),
      case when octet_length(e.payload) <= ${String(inlinePayloadBytes)} then e.payload end`

/** Undefined for a row that names a lane without an event. */
export function readEventRow(row: Row, from: number): EventRow | undefined {
  const id = row[from]
  if (id === null || id === undefined) return undefined
  const text = (offset: number): string | null => row[from + offset] as string | null
  const size = text(11)
  return {
    id: id as string,
    eventId: text(1) ?? '',
    topic: text(2) ?? '',
    key: text(3),
    type: text(4),
    contentType: text(5) ?? '',
    headers: text(6) ?? '{}',
    attempts: Number(text(7)),
    requeues: Number(text(8)),
    createdAtMs: Number(text(9)),
    readyAtMs: Number(text(10)),
    size: size === null ? null : Number(size),
    payload: row[from + 12] as Uint8Array | null,
  }
}
