import { slotCount } from '../contract/lane.ts'
import type { OwnedSlot } from '../storage/slots.ts'

/**
 * What this relay knows of its slots.
 *
 * owned: lanes of it may start. A slot that was just gained is `fresh` until a find carried it; then it is swept.
 * draining: it is being given up, so no lane of it starts or goes on; released once none is in flight.
 */
export interface SlotTable {
  readonly size: number
  readonly draining: number
  /** Slots whose lanes may start. */
  usable(): readonly number[]
  /** The epoch under which a lane of this slot may start, undefined when none may. */
  epoch(slot: number): string | undefined
  /** Takes the slots that were gained since the last call. */
  takeFresh(): number[]
  gain(slots: readonly OwnedSlot[]): void
  /** Brings the table in line with what the database says is owned. */
  reconcile(owned: readonly OwnedSlot[]): { readonly gained: number; readonly lost: number }
  /** Starts to give up so many slots. */
  drain(count: number): void
  isDraining(slot: number): boolean
  drainingSlots(): number[]
  lose(slot: number): void
  clear(): void
}

export function createSlotTable(): SlotTable {
  const epochs = new Map<number, string>()
  const draining = new Set<number>()
  let fresh: number[] = []
  let usable: readonly number[] | undefined

  function lose(slot: number): void {
    epochs.delete(slot)
    draining.delete(slot)
    usable = undefined
  }

  function gain(slots: readonly OwnedSlot[]): void {
    for (const { slot, epoch } of slots) {
      epochs.set(slot, epoch)
      draining.delete(slot)
      fresh.push(slot)
    }
    if (slots.length > 0) usable = undefined
  }

  return {
    get size() {
      return epochs.size
    },
    get draining() {
      return draining.size
    },
    usable() {
      usable ??= [...epochs.keys()].filter((slot) => !draining.has(slot)).sort((a, b) => a - b)
      return usable
    },
    epoch: (slot) => (draining.has(slot) ? undefined : epochs.get(slot)),
    takeFresh() {
      const taken = fresh
      fresh = []
      return taken
    },
    gain,
    reconcile(owned) {
      const now = new Map(owned.map(({ slot, epoch }) => [slot, epoch]))
      const lost = [...epochs].filter(([slot, epoch]) => now.get(slot) !== epoch).map(([slot]) => slot)
      lost.forEach(lose)
      const gained = owned.filter(({ slot }) => !epochs.has(slot))
      gain(gained)
      return { gained: gained.length, lost: lost.length }
    },
    drain(count) {
      let left = count
      // From the top, because claims go from the bottom: what a relay keeps stays one range, which sweeps in one go.
      for (let slot = slotCount - 1; slot >= 0 && left > 0; slot--) {
        if (!epochs.has(slot) || draining.has(slot)) continue
        draining.add(slot)
        left -= 1
      }
      usable = undefined
    },
    isDraining: (slot) => draining.has(slot),
    drainingSlots: () => [...draining],
    lose,
    clear() {
      epochs.clear()
      draining.clear()
      fresh = []
      usable = undefined
    },
  }
}
