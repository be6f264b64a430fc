/** One committed event as its writer knows it. Both moments are by one clock, or positions in one sequence. */
export interface Placed {
  readonly eventId: string
  readonly lane: string
  /** Before its INSERT was sent. */
  readonly sentAt: number
  /** After its COMMIT returned; null when nobody was told, which makes no other event wait for this one. */
  readonly committedAt: number | null
}

/** `early` was delivered first, although `late` was committed before `early` was inserted. */
export interface Overtaking {
  readonly early: Placed
  readonly late: Placed
}

export interface CausalOrder {
  readonly overtakings: readonly Overtaking[]
  /** Pairs of one lane that were compared. */
  readonly pairs: number
}

/**
 * In each lane, by first delivery: nothing that comes later may have been committed before this one was inserted. What
 * was truly concurrent has no order. `firstAt` gives the place of an event's first delivery; all events have one.
 */
export function checkCausalOrder(events: readonly Placed[], firstAt: (eventId: string) => number): CausalOrder {
  const overtakings: Overtaking[] = []
  let pairs = 0
  for (const lane of groupBy(events, ({ lane }) => lane).values()) {
    lane.sort((a, b) => firstAt(a.eventId) - firstAt(b.eventId))
    pairs += (lane.length * (lane.length - 1)) / 2
    let late: Placed | undefined
    for (const early of lane.toReversed()) {
      if (late !== undefined && committedBefore(late, early.sentAt)) overtakings.push({ early, late })
      if (late === undefined || committedBefore(early, late.committedAt ?? Infinity)) late = early
    }
  }
  return { overtakings, pairs }
}

function committedBefore({ committedAt }: Placed, moment: number): boolean {
  return committedAt !== null && committedAt < moment
}

export function groupBy<V>(values: readonly V[], key: (value: V) => string): Map<string, V[]> {
  const groups = new Map<string, V[]>()
  for (const value of values) {
    const group = groups.get(key(value))
    if (group === undefined) groups.set(key(value), [value])
    else group.push(value)
  }
  return groups
}
