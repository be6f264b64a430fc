import type { Delivered, History, Written } from './history.ts'

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
  const { outOfOrder, pairs } = judgeOrder(committed, byEvent, failed)
  return { lost, phantoms, outOfOrder, pairs, duplicates: deliveries.length - byEvent.size, unexplained }
}

function explains(earlier: Delivered, copy: Delivered, died: ReadonlyMap<string, number>): boolean {
  return earlier.acknowledgementLost || (died.has(earlier.relay) && copy.relay !== earlier.relay)
}

/**
 * In each lane, by first delivery: nothing that comes later may have been committed before this one was inserted.
 * Events for later and failed ones have no place in the order.
 */
function judgeOrder(
  committed: readonly Written[],
  byEvent: ReadonlyMap<string, readonly Delivered[]>,
  failed: ReadonlySet<string>,
): { outOfOrder: number; pairs: number } {
  const ordered = committed.filter(({ eventId, delayed }) => !delayed && !failed.has(eventId) && byEvent.has(eventId))
  let outOfOrder = 0
  let pairs = 0
  for (const lane of groupBy(ordered, ({ lane }) => lane).values()) {
    lane.sort((a, b) => firstAt(a, byEvent) - firstAt(b, byEvent))
    pairs += (lane.length * (lane.length - 1)) / 2
    let earliestLater = Infinity
    for (const event of lane.toReversed()) {
      if (earliestLater < event.sentAt) outOfOrder += 1
      earliestLater = Math.min(earliestLater, event.committedAt ?? Infinity)
    }
  }
  return { outOfOrder, pairs }
}

function firstAt({ eventId }: Written, byEvent: ReadonlyMap<string, readonly Delivered[]>): number {
  return byEvent.get(eventId)?.[0]?.at ?? Infinity
}

function groupBy<V>(values: readonly V[], key: (value: V) => string): Map<string, V[]> {
  const groups = new Map<string, V[]>()
  for (const value of values) {
    const group = groups.get(key(value))
    if (group === undefined) groups.set(key(value), [value])
    else group.push(value)
  }
  return groups
}
