/**
 * Which slots have lanes that were passed over for the sake of a destination: its breaker is open, or it has enough in
 * flight. Only slots are remembered, never lanes, so that an outage costs no memory; the slots are swept afterwards.
 */
export interface Parking {
  park(destination: string, slot: number): void
  /** Takes all slots that wait for a destination. */
  release(destination: string): number[]
  /** Takes one slot that waits for a destination, another one each time: for a probe. */
  takeOne(destination: string): number | undefined
  destinations(): string[]
  isWaiting(destination: string): boolean
  forget(slot: number): void
}

export function createParking(): Parking {
  const waiting = new Map<string, Set<number>>()
  return {
    park(destination, slot) {
      const slots = waiting.get(destination)
      if (slots === undefined) waiting.set(destination, new Set([slot]))
      else slots.add(slot)
    },
    release(destination) {
      const slots = [...(waiting.get(destination) ?? [])]
      waiting.delete(destination)
      return slots
    },
    takeOne(destination) {
      const slots = waiting.get(destination)
      if (slots === undefined) return undefined
      for (const slot of slots) {
        slots.delete(slot)
        if (slots.size === 0) waiting.delete(destination)
        return slot
      }
      return undefined
    },
    destinations: () => [...waiting.keys()],
    isWaiting: (destination) => waiting.has(destination),
    forget(slot) {
      for (const [destination, slots] of waiting) {
        slots.delete(slot)
        if (slots.size === 0) waiting.delete(destination)
      }
    },
  }
}
