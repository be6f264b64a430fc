import type { Breakers } from './breaker.ts'
import type { Isolation } from './isolation.ts'
import type { Lanes } from './lanes.ts'
import type { Parking } from './parking.ts'

export interface ProbeOptions {
  readonly mayStart: () => boolean
  readonly isolation: Isolation
  readonly parking: Parking
  readonly breakers: Breakers
  readonly lanes: Lanes
  /** Has these slots read from their start. */
  readonly sweep: (slots: readonly number[]) => void
  /** Has everything swept that waits for these destinations. */
  readonly unpark: (destinations: readonly string[]) => void
}

/**
 * Looks at what waits for a time or for room: one slot of each destination whose pause is over, everything of one that
 * has room again, and the isolated slots. Returns in how many ms to look again at the latest.
 */
export function createProbe(options: ProbeOptions): () => number {
  const { mayStart, isolation, parking, breakers, lanes, sweep, unpark } = options
  return () => {
    if (!mayStart()) return Infinity
    const now = performance.now()
    const marked = isolation.overdue(now)
    let next = isolation.dueAt() - now
    for (const destination of parking.destinations()) {
      if (breakers.closed(destination)) {
        // Enough in flight was the reason to wait.
        if (lanes.mostlyFree(destination)) unpark([destination])
        continue
      }
      const at = breakers.probeAt(destination)
      const slot = at <= now ? parking.takeOne(destination) : undefined
      if (slot !== undefined) marked.push(slot)
      else next = Math.min(next, at - now)
    }
    if (marked.length > 0) sweep(marked)
    return next
  }
}
