import type { EventState } from './attempts.ts'
import type { Delivered, Explanation } from './order-proof.ts'

export interface Arrival extends Delivered {
  /** The relay that brought it. */
  readonly relay: string
}

export interface KilledRelay {
  readonly relay: string
  /** When nothing of it could write any more, in microseconds by the database's clock. */
  readonly deadAt: bigint
}

export interface LostAcknowledgement {
  readonly relay: string
  readonly eventIds: readonly string[]
}

/**
 * The extra deliveries that had to be. A lost acknowledgement accounts for one of each event of its run. A killed relay
 * accounts for one of each event that it brought to the broker and whose acknowledgement was not in the database when
 * it was dead: that is what had been in flight. What it had settled before gives no excuse.
 */
export function explainDuplicates(
  arrivals: readonly Arrival[],
  states: readonly EventState[],
  faults: { readonly killed: readonly KilledRelay[]; readonly lostAcks: readonly LostAcknowledgement[] },
): Explanation[] {
  const publishedAt = new Map(states.map((state) => [state.eventId, state.publishedAt]))
  const lost = faults.lostAcks.flatMap(({ relay, eventIds }) =>
    eventIds.map((eventId) => ({ eventId, why: `its acknowledgement to ${relay} was lost` })),
  )
  const inFlight = faults.killed.flatMap(({ relay, deadAt }) =>
    arrivals
      .filter((arrival) => arrival.relay === relay && (publishedAt.get(arrival.eventId) ?? deadAt + 1n) > deadAt)
      .map(({ eventId }) => ({ eventId, why: `${relay} was killed with it in flight` })),
  )
  return [...lost, ...inFlight]
}
