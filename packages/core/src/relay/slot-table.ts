import type { OwnedSlot } from '../storage/slots.ts'

/**
 * What this relay knows of its slots.
 *
 * owned: lanes of it may start. A slot that was just gained is `fresh` until a find carried it; then it is swept.
 * draining: it is being given up, so no lane of it starts or goes on; released once none is in flight, and kept when
 *   that takes too long.
 */
export interface SlotTable {
  readonly size: number
  readonly draining: number
  /** Slots whose lanes may start. */
  usable(): readonly number[]
  /** The epoch under which a lane of this slot may start, undefined when none may. */
  epoch(slot: number): string | undefined
  /** Whether slots were gained since the last call of `takeFresh`. */
  readonly hasFresh: boolean
  /** Takes the slots that were gained since the last call. */
  takeFresh(): number[]
  gain(slots: readonly OwnedSlot[]): void
  /** Brings the table in line with what the database says is owned. */
  reconcile(owned: readonly OwnedSlot[]): { readonly gained: number; readonly lost: number }
  /** Starts to give up so many slots, first those of which nothing is in flight. */
  drain(count: number, now: number, isIdle: (slot: number) => boolean): void
  /** These slots are being released: nothing brings them back. */
  releasing(slots: readonly number[]): void
  /** Keeps slots that could not be given up for too long, because something of them hangs: the others go on meanwhile. */
  keepStuck(now: number): void
  isDraining(slot: number): boolean
  drainingSlots(): number[]
  lose(slot: number): void
  clear(): void
}

export function createSlotTable({ drainMs }: { readonly drainMs: number }): SlotTable {
  const epochs = new Map<number, string>()
  /** Since when. */
  const draining = new Map<number, number>()
  const stuck = new Set<number>()
  let fresh: number[] = []
  let usable: readonly number[] | undefined

  function lose(slot: number): void {
    epochs.delete(slot)
    draining.delete(slot)
    stuck.delete(slot)
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
    get hasFresh() {
      return fresh.length > 0
    },
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
    drain(count, now, isIdle) {
      // From the top, because claims go from the bottom: what a relay keeps stays one range, which sweeps in one go.
      const candidates = [...epochs.keys()].filter((slot) => !draining.has(slot)).sort((a, b) => b - a)
      const rank = (slot: number): number => (isIdle(slot) ? 0 : stuck.has(slot) ? 2 : 1)
      for (const slot of candidates.sort((a, b) => rank(a) - rank(b)).slice(0, count)) draining.set(slot, now)
      usable = undefined
    },
    releasing(slots) {
      for (const slot of slots) draining.set(slot, Infinity)
    },
    keepStuck(now) {
      for (const [slot, since] of draining) {
        if (now - since < drainMs) continue
        draining.delete(slot)
        stuck.add(slot)
        fresh.push(slot)
        usable = undefined
      }
    },
    isDraining: (slot) => draining.has(slot),
    drainingSlots: () => [...draining.keys()],
    lose,
    clear() {
      epochs.clear()
      draining.clear()
      stuck.clear()
      fresh = []
      usable = undefined
    },
  }
}
