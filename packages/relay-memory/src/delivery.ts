import type { OutboxEvent } from '@inorder/core'

/** One event that reached the broker, as it was, with where and when. */
export interface Delivery extends OutboxEvent {
  /** Position among everything that this broker took, from 1. */
  readonly seq: number
  readonly destination: string
  /** When it landed, in milliseconds of `performance.now()`. */
  readonly at: number
  /** Name of the publisher that brought it. */
  readonly publisher: string
}

/** Which events a fault is about: those that have every given value, or those that the function returns true for. */
export type Match =
  | ((event: OutboxEvent) => boolean)
  | { readonly key?: string | null; readonly topic?: string; readonly eventId?: string }

export function matches(match: Match | undefined, event: OutboxEvent): boolean {
  if (match === undefined) return true
  if (typeof match === 'function') return match(event)
  return (
    (match.key === undefined || match.key === event.key) &&
    (match.topic === undefined || match.topic === event.topic) &&
    (match.eventId === undefined || match.eventId === event.eventId)
  )
}
