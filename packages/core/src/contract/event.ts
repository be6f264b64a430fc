/** How an event is kept in order: with its key, with everything in the outbox, or not at all. */
export type Ordering = 'key' | 'total' | 'none'

/**
 * One event as a publisher sees it. Everything in it is what was enqueued, except `attempt`.
 *
 * `eventId` is the identity that consumers dedupe on; it never changes. `id` orders events inside a lane and is
 * otherwise informational: after a database failover ids can be issued again.
 */
export interface OutboxEvent {
  /** Row id as decimal text, because it does not fit a JavaScript number. */
  readonly id: string
  readonly eventId: string
  readonly topic: string
  /** What must stay in order; null is unordered. The empty string is a key like any other. */
  readonly key: string | null
  readonly type: string | null
  /** The bytes exactly as enqueued; null is a tombstone. */
  readonly payload: Uint8Array | null
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
  /** 1 for the first counted try. Tries that were not counted (an outage, an unknown outcome) do not raise it. */
  readonly attempt: number
  /** How often an operator put the event back in line; part of the broker's dedupe id. */
  readonly requeues: number
  readonly createdAt: Date
}

/** Turns a payload that is neither bytes nor null into what is stored, instead of JSON. */
export type Serialize = (payload: unknown) => string | Uint8Array

/**
 * The names under which every adapter puts an event's identity on the wire, the same on each broker, so that a
 * consumer can move from one broker to another.
 */
export const wireNames = {
  eventId: 'outbox-event-id',
  id: 'outbox-id',
  topic: 'outbox-topic',
  key: 'outbox-key',
  type: 'outbox-type',
  attempt: 'outbox-attempt',
  requeues: 'outbox-requeues',
  createdAt: 'outbox-created-at',
  contentType: 'content-type',
  traceparent: 'traceparent',
  tracestate: 'tracestate',
} as const
