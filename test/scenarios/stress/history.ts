/** One event as its writer knows it. All moments are positions in one sequence shared with the deliveries. */
export interface Written {
  readonly eventId: string
  readonly lane: string
  /** Scheduled for later: it has no place in the order of its lane. */
  readonly delayed: boolean
  /** When its INSERT was sent. */
  readonly sentAt: number
  /** When its COMMIT returned; null while its transaction is open or when it was rolled back. */
  committedAt: number | null
  rolledBack: boolean
}

export interface Delivered {
  readonly eventId: string
  readonly at: number
  readonly relay: string
  /** The broker has it, but its relay was told that the outcome is unknown. */
  readonly acknowledgementLost: boolean
}

/** What a campaign wrote and what its broker received. */
export interface History {
  readonly written: ReadonlyMap<string, Written>
  readonly deliveries: readonly Delivered[]
  next(): number
  sending(eventId: string, lane: string, delayed: boolean): void
  rolledBack(eventIds: readonly string[]): void
  committed(eventIds: readonly string[]): void
  delivered(eventId: string, relay: string, acknowledgementLost: boolean): void
}

export function createHistory(): History {
  const written = new Map<string, Written>()
  const deliveries: Delivered[] = []
  let sequence = 0
  const next = (): number => (sequence += 1)
  return {
    written,
    deliveries,
    next,
    sending(eventId, lane, delayed) {
      written.set(eventId, { eventId, lane, delayed, sentAt: next(), committedAt: null, rolledBack: false })
    },
    rolledBack(eventIds) {
      for (const eventId of eventIds) {
        const event = written.get(eventId)
        if (event !== undefined) event.rolledBack = true
      }
    },
    committed(eventIds) {
      const at = next()
      for (const eventId of eventIds) {
        const event = written.get(eventId)
        if (event !== undefined) event.committedAt = at
      }
    },
    delivered(eventId, relay, acknowledgementLost) {
      deliveries.push({ eventId, at: next(), relay, acknowledgementLost })
    },
  }
}
