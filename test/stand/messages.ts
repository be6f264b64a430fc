import type { RelayOptions } from '@inorder/core'
import type { PublishReply, PublishRequest } from './remote-publisher.ts'
import type { Answer, RareFault } from './faulty-publisher.ts'
import type { Lies } from './lying-publisher.ts'

/** How a relay process is to work. */
export interface RelayOrders {
  readonly name: string
  readonly databaseUrl: string
  /** Absent: the broker is in the stand's own process. */
  readonly redisUrl: string | undefined
  readonly seed: number
  readonly maxRun: number
  readonly rejected: number
  readonly unavailable: number
  readonly leaseMs: number
  readonly backoffMs: number
  /** More options of the relay. */
  readonly relayOptions?: Partial<
    Pick<RelayOptions, 'publishTimeoutMs' | 'statementTimeoutMs' | 'findLimit' | 'maxInFlight'>
  >
  /** Makes the relay's publisher break its contract. */
  readonly lies?: Lies
}

/** What a writer process is to write. */
export interface WriterOrders {
  readonly name: string
  readonly databaseUrl: string
  readonly seed: number
  readonly events: number
  readonly keys: number
}

export type ToRelay =
  | PublishReply
  /** The next acknowledged run may claim this fault. */
  | { readonly kind: 'arm'; readonly fault: RareFault }
  | { readonly kind: 'granted'; readonly claim: number; readonly granted: boolean }
  | { readonly kind: 'look' }
  | { readonly kind: 'stop' }

/** How a relay process is, as it says itself. */
export interface Look {
  readonly lanes: number
  readonly events: number
  readonly slots: number
  readonly leaseHolds: boolean
  /** Bytes of its heap; garbage counts only where node was not started with `--expose-gc`. */
  readonly heap: number
}

export type FromRelay =
  | PublishRequest
  | { readonly kind: 'started' }
  | ({ readonly kind: 'answered' } & Answer)
  /** The broker has these events, and the relay does not know it yet: is this the run that meets the fault? */
  | { readonly kind: 'claim'; readonly claim: number; readonly fault: RareFault; readonly eventIds: readonly string[] }
  | { readonly kind: 'lease-lost' }
  /** An event has failed for good. */
  | { readonly kind: 'failed'; readonly eventId: string; readonly why: string }
  /** What may happen on a slow machine, and is only told. */
  | { readonly kind: 'remark'; readonly what: string }
  /** What must not happen. */
  | { readonly kind: 'trouble'; readonly what: string }
  | ({ readonly kind: 'looked' } & Look)
  | {
      readonly kind: 'stopped'
      readonly counted: number
      /** Whether it held its lease when it was told to stop. */
      readonly leaseHeld: boolean
      /** What would have kept the process alive: timers, sockets. */
      readonly left: readonly string[]
    }

export type FromWriter =
  | { readonly kind: 'committed'; readonly events: number }
  | { readonly kind: 'rolled-back'; readonly events: number }
