import type { Engine } from './engine.ts'

/** How a relay is. A broker that is down makes it neither dead nor unready. */
export interface RelayHealth {
  readonly state: 'new' | 'starting' | 'running' | 'stopping' | 'stopped'
  /** False when the relay cannot do its work any more without help: its publisher hangs and cannot be closed. */
  readonly live: boolean
  readonly relay: string | undefined
  /** False while a statement of the relay cannot be run; it is tried again for ever. The cause is the latest. */
  readonly database: { readonly ok: boolean; readonly cause: unknown }
  readonly publisher: { readonly state: string; readonly cause: unknown }
  /** Destinations that take nothing at the moment, and since how many ms. */
  readonly unavailable: readonly { readonly destination: string; readonly forMs: number; readonly cause: unknown }[]
  readonly leaseHolds: boolean
  /** The last thing that `onSignal` threw. */
  readonly observerFault: unknown
  readonly slots: number
  readonly lanesInFlight: number
  readonly eventsInFlight: number
  /** Milliseconds since the last find returned, undefined before the first. */
  readonly sinceLastFindMs: number | undefined
}

export interface HealthParts {
  readonly state: RelayHealth['state']
  readonly engine: Engine | undefined
  /** What could not be done with the database last time, by use; the latest comes last. */
  readonly troubles: ReadonlyMap<string, unknown>
  readonly lastFindAt: number | undefined
  readonly observerFault: unknown
}

export function readRelayHealth({ state, engine, troubles, lastFindAt, observerFault }: HealthParts): RelayHealth {
  const now = performance.now()
  return {
    state,
    live: engine?.link.state !== 'stuck',
    relay: engine?.ownership.relay,
    database: { ok: troubles.size === 0, cause: [...troubles.values()].at(-1) },
    publisher: { state: engine?.link.state ?? 'closed', cause: engine?.link.cause },
    unavailable: (engine?.breakers.open() ?? []).map(({ destination, sinceMs, cause }) => ({
      destination,
      forMs: now - sinceMs,
      cause,
    })),
    observerFault,
    leaseHolds: engine?.ownership.holds() ?? false,
    slots: engine?.slots.size ?? 0,
    lanesInFlight: engine?.lanes.size ?? 0,
    eventsInFlight: engine?.lanes.events ?? 0,
    sinceLastFindMs: lastFindAt === undefined ? undefined : now - lastFindAt,
  }
}
