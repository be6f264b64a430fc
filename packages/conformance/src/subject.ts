import type { OutboxEvent, Publisher } from '@inorder/core'

/** One event as a consumer of the broker sees it, translated back from whatever the adapter made of it. */
export interface Delivered {
  readonly eventId: string
  readonly id: string
  readonly topic: string
  readonly key: string | null
  readonly type: string | null
  readonly payload: Uint8Array | null
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
  readonly attempt: number
  readonly requeues: number
  readonly createdAt: Date
}

/** Undoes what a hook did to the broker. */
export type Restore = () => Promise<void> | void

/**
 * What the suite needs of an adapter under test: a broker that it can read back, and the ways in which that broker can
 * be made to fail. Every hook is optional; the cases that need a missing one are listed as skipped.
 */
export interface ConformanceSubject {
  /** A new publisher with the options under test, not connected. */
  createPublisher(): Publisher
  /** Everything that reached this destination so far, in the order in which a consumer gets it. */
  read(destination: string): Promise<readonly Delivered[]>
  /** Creates the topic, for brokers where it must exist before the first publish. */
  createTopic?(topic: string): Promise<void>
  /**
   * Changes the event, the broker or both so that the broker refuses the returned event and takes every other. The
   * event id must stay as it is.
   */
  poison?(event: OutboxEvent): Promise<OutboxEvent> | OutboxEvent
  /** From now on the broker takes what is published, and its acknowledgements get lost, until restored. */
  loseAcknowledgements?(): Promise<Restore> | Restore
  /** From now on the broker answers nothing, until restored. Requests may wait for it in a buffer. */
  stall?(): Promise<Restore> | Restore
  /** A publisher whose broker cannot be reached. */
  createUnreachablePublisher?(): Publisher
  /** How long a case waits for something that must happen, in milliseconds. Default 5,000. */
  readonly patienceMs?: number
  /** How long a case watches for something that must not happen, in milliseconds. Default 100. */
  readonly quietMs?: number
}

/** The members of a subject that a case can need. */
export type Hook = 'poison' | 'loseAcknowledgements' | 'stall' | 'createUnreachablePublisher'

/** What each hook makes the broker do, for the reason that a skipped case gives. */
export const hookMeanings: Readonly<Record<Hook, string>> = {
  poison: 'makes the broker refuse one event',
  loseAcknowledgements: 'loses the acknowledgements of the broker',
  stall: 'stops the broker from answering',
  createUnreachablePublisher: 'makes a publisher whose broker cannot be reached',
}
