import type { EventState } from './attempts.ts'
import type { Delivered, Explanation } from './order-proof.ts'

export interface Arrival extends Delivered {
  /** The relay that brought it. */
  readonly relay: string
  /** When it arrived, in microseconds since 1970, where the broker can tell. */
  readonly at?: bigint
}

/** A relay that could not finish what it had begun. */
export interface Departure {
  /** Undefined is every relay. */
  readonly relay: string | undefined
  /**
   * `killed` on purpose, or `lost its lease` because it could not renew it: then others took over. `stopped` when it was
   * told to and could not write what it knew. `failed over`: the database forgot what relays had written.
   */
  readonly how: 'killed' | 'lost its lease' | 'stopped' | 'failed over'
  /** What it settles after this moment was in flight, in microseconds by the database's clock. */
  readonly at: bigint
  /** Nothing that it brought after this moment was in flight then. Absent: it brought nothing more. */
  readonly until?: bigint
}

export interface LostAcknowledgement {
  readonly relay: string
  readonly eventIds: readonly string[]
}

/**
 * The extra deliveries that had to be. A lost acknowledgement accounts for one of each event of its run. A departed
 * relay accounts for one of each event that it brought to the broker and whose acknowledgement was not in the database
 * when it departed: that is what had been in flight. What it had settled before gives no excuse.
 */
export function explainDuplicates(
  arrivals: readonly Arrival[],
  states: readonly EventState[],
  faults: { readonly departures: readonly Departure[]; readonly lostAcks: readonly LostAcknowledgement[] },
): Explanation[] {
  const publishedAt = new Map(states.map((state) => [state.eventId, state.publishedAt]))
  const lost = faults.lostAcks.flatMap(({ relay, eventIds }) =>
    eventIds.map((eventId) => ({ eventId, why: `its acknowledgement to ${relay} was lost` })),
  )
  const inFlight = faults.departures.flatMap(({ relay, how, at, until }) => {
    const brought = arrivals.filter(
      (arrival) =>
        (relay ?? arrival.relay) === arrival.relay && (until === undefined || (arrival.at ?? until) <= until),
    )
    const unsettled = brought.filter(({ eventId }) => (publishedAt.get(eventId) ?? at + 1n) > at)
    return unsettled.map(({ eventId }) => ({
      eventId,
      why: `${relay ?? 'the database'} ${how === 'killed' ? 'was killed' : how} with it in flight`,
    }))
  })
  return [...lost, ...inFlight]
}
