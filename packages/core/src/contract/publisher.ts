import type { OutboxEvent } from './event.ts'

/**
 * The broker side of a relay. Everything the engine knows of a broker goes through these members, and the suite in
 * `@inorder/conformance` checks each obligation below.
 */
export interface Publisher {
  readonly name: string
  readonly capabilities: PublisherCapabilities
  /**
   * Resolves when `publish` may be called. Rejects when the broker cannot be reached or refuses the credentials. May be
   * called again after `close`: that is how the relay replaces a publisher that hangs.
   */
  connect(signal: AbortSignal): Promise<void>
  /** What can be down by itself: a topic, a queue, a stream. Pure, and cheap: it is called for every event. */
  destination(event: OutboxEvent): string
  /**
   * Publishes the events of one lane in their order and says how far it came.
   *
   * Called concurrently for different lanes, never twice at once for one lane. Must settle soon after `signal`
   * aborts. Nothing that it gave up on may reach the broker after it resolved, as far as `capabilities.fence` says.
   */
  publish(run: readonly OutboxEvent[], signal: AbortSignal): Promise<RunResult>
  /** Says why the broker would never take this event. Pure: no connection is needed. */
  validate?(event: OutboxEvent): Rejection | undefined
  /** Looks at the destination and its settings and names what is unsafe, each with its fix. */
  check(): Promise<Health>
  /** Destroys the sockets. Nothing reaches the wire after it resolves. Safe to call twice. */
  close(): Promise<void>
}

/**
 * How far a run came. `acknowledged` counts events from the start of the run that the broker durably has. When it is
 * less than the run's length, `failure` says why the next event stopped; nothing behind that event was sent. Only an
 * `unknown` failure covers the next event and all behind it.
 */
export interface RunResult {
  readonly acknowledged: number
  readonly failure?: Failure
  readonly receipts?: readonly Receipt[]
}

/**
 * Why an event was not acknowledged.
 *
 * - `rejected`: an answer about this message; counts an attempt.
 * - `permanent`: will never be accepted (too large, invalid); the event fails at once.
 * - `transient`: not taken, for a passing reason that is no fault of the event; certainly not delivered. Retried with
 *   backoff for as long as it takes, no attempt. Its lane alone waits; with `unavailable` the destination does.
 * - `unavailable`: the destination, or the whole broker when `destination` is absent, takes nothing; no attempt.
 * - `unknown`: may have been delivered; retried with the same dedupe id, counted only while the destination
 *   acknowledges other events.
 */
export type FailureKind = 'rejected' | 'permanent' | 'transient' | 'unavailable' | 'unknown'

export interface Failure {
  readonly kind: FailureKind
  /** The destination this failure is about. Absent with `unavailable`: the whole broker. */
  readonly destination?: string
  /** How long the broker asked to wait, in milliseconds. Wins over the backoff. */
  readonly retryAfterMs?: number
  readonly cause: unknown
}

export interface Rejection {
  readonly reason: string
}

/** Where the broker put an acknowledged event: partition and offset, sequence number or stream id. */
export interface Receipt {
  readonly destination: string
  readonly position?: string
}

export interface Health {
  readonly ok: boolean
  readonly findings: readonly Finding[]
}

export interface Finding {
  readonly severity: 'error' | 'warning'
  readonly what: string
  readonly fix: string
}

/** What a broker and its adapter can do; read by the relay, the conformance suite and the docs alike. */
export interface PublisherCapabilities {
  /** Largest payload in bytes that the broker takes. A larger event fails at once. */
  readonly maxEventBytes: number
  /** Most events of one lane in one `publish` call. */
  readonly maxRun: number
  /** Whether order holds per key or over everything that is published. */
  readonly order: 'key' | 'total'
  /** Whether the broker drops a repeated event id by itself, and for how long it remembers one. */
  readonly dedupe: { readonly by: 'broker' | 'none'; readonly windowMs: number }
  /** Against whose late write the adapter protects: its own given-up publishes, or also another relay's. */
  readonly fence: 'same-relay' | 'takeover' | 'none'
  /** Whether a null payload stays distinguishable from an empty one. */
  readonly tombstones: boolean
  readonly headers: boolean
  /** What an acknowledgement means: on disk or replicated, or only in the broker's memory. */
  readonly confirms: 'durable' | 'memory'
}
