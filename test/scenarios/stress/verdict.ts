import { checkCausalOrder, groupBy } from '../../stand/causal-order.ts'
import type { Delivered, History } from './history.ts'

export interface Verdict {
  /** Committed, neither delivered nor failed. */
  readonly lost: number
  /** Delivered although rolled back. */
  readonly phantoms: number
  /** Events delivered before one that had been committed before they were inserted. */
  readonly outOfOrder: number
  /** Ordered pairs of one lane that were compared. */
  readonly pairs: number
  readonly duplicates: number
  /** Duplicates that neither a lost acknowledgement nor a dead relay explains. */
  readonly unexplained: number
}

export interface Circumstances {
  /** Event ids that ended as failed. */
  readonly failed: ReadonlySet<string>
  /** Relays that died with publishes in hand, and when. */
  readonly died: ReadonlyMap<string, number>
}

/** Compares what was delivered with what was promised. */
export function judge(
  { written, deliveries }: Pick<History, 'written' | 'deliveries'>,
  { failed, died }: Circumstances,
): Verdict {
  const byEvent = groupBy(deliveries, ({ eventId }) => eventId)
  const committed = [...written.values()].filter(({ committedAt }) => committedAt !== null)
  const phantoms = [...byEvent.keys()].filter((eventId) => written.get(eventId)?.rolledBack !== false).length
  const lost = committed.filter(({ eventId }) => !byEvent.has(eventId) && !failed.has(eventId)).length

  let unexplained = 0
  for (const copies of byEvent.values()) {
    copies.forEach((copy, index) => {
      if (index > 0 && !copies.slice(0, index).some((earlier) => explains(earlier, copy, died))) unexplained += 1
    })
  }
  // Events for later and failed ones have no place in the order.
  const ordered = committed.filter(({ eventId, delayed }) => !delayed && !failed.has(eventId) && byEvent.has(eventId))
  const { overtakings, pairs } = checkCausalOrder(ordered, (eventId) => byEvent.get(eventId)?.[0]?.at ?? Infinity)
  const duplicates = deliveries.length - byEvent.size
  return { lost, phantoms, outOfOrder: overtakings.length, pairs, duplicates, unexplained }
}

function explains(earlier: Delivered, copy: Delivered, died: ReadonlyMap<string, number>): boolean {
  return earlier.acknowledgementLost || (died.has(earlier.relay) && copy.relay !== earlier.relay)
}
