/** One event as its writer recorded it, beside the business rows. */
export interface Written {
  readonly eventId: string
  readonly key: string
  /** Position among the committed events of its key. */
  readonly position: number
}

/** One event as the broker has it. The list of them is in the order of arrival, at least per key. */
export interface Delivered {
  readonly eventId: string
}

/** Why an event may have been delivered once more than it was written. */
export interface Explanation {
  readonly eventId: string
  readonly why: string
}

export interface Proof {
  readonly written: number
  /** Different written events that the broker has. */
  readonly published: number
  /** Written, and the broker never had them. */
  readonly lost: readonly Written[]
  /** Delivered for the first time after a later event of their key. */
  readonly outOfOrder: readonly Written[]
  /** At the broker, and never committed by a writer. */
  readonly phantoms: readonly string[]
  /** Deliveries beyond the first, each with its explanation. */
  readonly duplicates: readonly { readonly eventId: string; readonly why: string | undefined }[]
  /** Duplicates that nothing explains. */
  readonly unexplained: number
}

/** Compares what was written with what the broker has. One explanation accounts for one extra delivery. */
export function proveOrder(
  written: readonly Written[],
  delivered: readonly Delivered[],
  explanations: readonly Explanation[] = [],
): Proof {
  const known = new Map(written.map((event) => [event.eventId, event]))
  const seen = new Set<string>()
  const latest = new Map<string, number>()
  const reasons = new Map<string, string[]>()
  for (const { eventId, why } of explanations) reasons.set(eventId, [...(reasons.get(eventId) ?? []), why])

  const outOfOrder: Written[] = []
  const phantoms: string[] = []
  const duplicates: { eventId: string; why: string | undefined }[] = []
  for (const { eventId } of delivered) {
    const event = known.get(eventId)
    if (seen.has(eventId)) duplicates.push({ eventId, why: reasons.get(eventId)?.shift() })
    else if (event === undefined) phantoms.push(eventId)
    else {
      const before = latest.get(event.key) ?? 0
      if (event.position < before) outOfOrder.push(event)
      latest.set(event.key, Math.max(before, event.position))
    }
    seen.add(eventId)
  }
  return {
    written: written.length,
    published: written.filter(({ eventId }) => seen.has(eventId)).length,
    lost: written.filter(({ eventId }) => !seen.has(eventId)),
    outOfOrder,
    phantoms,
    duplicates,
    unexplained: duplicates.filter(({ why }) => why === undefined).length,
  }
}
