import { type OutboxEvent, wireNames } from './event.ts'

/** An event as a consumer gets it back from its headers. */
export interface WireEvent {
  readonly eventId: string
  readonly id: string
  readonly topic: string
  readonly key: string | null
  readonly type: string | null
  readonly attempt: number
  readonly requeues: number
  readonly createdAt: Date
  readonly contentType: string
  /** The headers of the event, without those that are its identity. */
  readonly headers: Readonly<Record<string, string>>
}

/**
 * What a broker with headers carries beside the payload: the event's own headers, and its identity under `wireNames`,
 * which win. The key and the type are left out when the event has none; an empty key is there and empty.
 */
export function wireHeaders(event: OutboxEvent): Record<string, string> {
  return {
    ...event.headers,
    [wireNames.eventId]: event.eventId,
    [wireNames.id]: event.id,
    [wireNames.topic]: event.topic,
    ...(event.key === null ? {} : { [wireNames.key]: event.key }),
    ...(event.type === null ? {} : { [wireNames.type]: event.type }),
    [wireNames.attempt]: String(event.attempt),
    [wireNames.requeues]: String(event.requeues),
    [wireNames.createdAt]: event.createdAt.toISOString(),
    [wireNames.contentType]: event.contentType,
  }
}

const identity: ReadonlySet<string> = new Set([
  wireNames.eventId,
  wireNames.id,
  wireNames.topic,
  wireNames.key,
  wireNames.type,
  wireNames.attempt,
  wireNames.requeues,
  wireNames.createdAt,
  wireNames.contentType,
])

/**
 * Reads the identity of an event back from headers, whichever broker they came through.
 *
 * @throws Error when they were not written by a publisher of Inorder.
 */
export function readWireHeaders(headers: Readonly<Record<string, string>>): WireEvent {
  const text = (name: string): string => {
    const value = headers[name]
    if (value === undefined) throw new Error(`Not an event of an outbox: the header ${name} is missing`)
    return value
  }
  return {
    eventId: text(wireNames.eventId),
    id: text(wireNames.id),
    topic: text(wireNames.topic),
    key: headers[wireNames.key] ?? null,
    type: headers[wireNames.type] ?? null,
    attempt: Number(text(wireNames.attempt)),
    requeues: Number(text(wireNames.requeues)),
    createdAt: new Date(text(wireNames.createdAt)),
    contentType: text(wireNames.contentType),
    headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !identity.has(name))),
  }
}
