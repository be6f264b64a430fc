import type { Failure } from './publisher.ts'

/** What a relay says while it works: for logs, metrics and tests that wait. Never carries a payload. */
export type RelaySignal =
  | { readonly kind: 'started'; readonly relay: string }
  | { readonly kind: 'stopped'; readonly relay: string }
  /** Slots this relay owns now. */
  | { readonly kind: 'slots'; readonly owned: number; readonly gained: number; readonly lost: number }
  /**
   * So many slots of this relay have owners that crashed in a row. Their events go one at a time, until the one that
   * kills the process is found, or a lease passes without a crash; 0 says that it is over.
   */
  | { readonly kind: 'isolation'; readonly slots: number }
  /** The lease could not be renewed in time: what it owned may belong to others. */
  | { readonly kind: 'lease-lost' }
  /** A find returned: how many lanes it brought, and how long it took. */
  | { readonly kind: 'found'; readonly lanes: number; readonly durationMs: number; readonly hit: boolean }
  /** Nothing is in line that this relay could publish now. */
  | { readonly kind: 'idle' }
  /** A publisher answered for a run. */
  | {
      readonly kind: 'published'
      readonly destination: string
      readonly events: readonly SignalEvent[]
      readonly acknowledged: number
      readonly failure: Failure | undefined
      readonly durationMs: number
    }
  /** Outcomes are committed. */
  | {
      readonly kind: 'settled'
      readonly published: number
      readonly counted: number
      readonly failed: number
      readonly durationMs: number
    }
  /** Published events past their retention were deleted. */
  | { readonly kind: 'purged'; readonly events: number }
  /** An event has failed for good, or is held; the same goes to `onFailed`. */
  | { readonly kind: 'failed'; readonly event: SignalEvent; readonly held: boolean; readonly cause: unknown }
  | { readonly kind: 'breaker'; readonly destination: string; readonly open: boolean; readonly cause: unknown }
  /** The database could not be used for one of the relay's needs, or can be again; it is tried for ever. */
  | {
      readonly kind: 'database'
      readonly use: 'find' | 'load' | 'settle' | 'ownership' | 'purge'
      readonly ok: boolean
      readonly cause: unknown
    }
  /** The publisher broke its contract, or had to be replaced. */
  | { readonly kind: 'fault'; readonly what: string; readonly cause: unknown }

export interface SignalEvent {
  readonly id: string
  readonly eventId: string
  readonly topic: string
  readonly key: string | null
  readonly attempts: number
}
