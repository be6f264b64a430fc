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
  gain(slots: readonly OwnedSlot[], now: number): void
  /** Brings the table in line with what the database says is owned. */
  reconcile(owned: readonly OwnedSlot[], now: number): { readonly gained: number; readonly lost: number }
  /** Whether so many owners of this slot crashed in a row that its events go one at a time. */
  isolated(slot: number): boolean
  /** How many slots are isolated. */
  readonly isolation: number
  /** In how many of those crashes this event was the one being published. */
  suspicion(slot: number, eventId: string): number
  /**
   * Slots whose crashes can be forgiven, because they were owned for a lease since. One in which an event is suspected
   * waits longer for that event to have its turn.
   */
  clean(now: number): number[]
  forgive(slots: readonly number[]): void
  /** An event came through: it is suspected no more. */
  acquit(slot: number, eventId: string): void
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

/** One crash has many reasons; two in a row may have to do with what was being published. */
const crashesUntilIsolated = 2

/** How many leases a suspected event has to get its turn; it may be gone. */
const leasesForSuspects = 6

interface Owned {
  readonly epoch: string
  readonly since: number
  crashes: number
  suspicions: Readonly<Record<string, number>>
}

export function createSlotTable({ leaseMs }: { readonly leaseMs: number }): SlotTable {
  const owned = new Map<number, Owned>()
  /** Since when. */
  const draining = new Map<number, number>()
  const stuck = new Set<number>()
  let fresh: number[] = []
  let usable: readonly number[] | undefined

  function lose(slot: number): void {
    owned.delete(slot)
    draining.delete(slot)
    stuck.delete(slot)
    usable = undefined
  }

  function gain(slots: readonly OwnedSlot[], now: number): void {
    for (const { slot, epoch, crashes, suspicions } of slots) {
      owned.set(slot, { epoch, since: now, crashes, suspicions })
      draining.delete(slot)
      fresh.push(slot)
    }
    if (slots.length > 0) usable = undefined
  }

  return {
    get size() {
      return owned.size
    },
    get draining() {
      return draining.size
    },
    usable() {
      usable ??= [...owned.keys()].filter((slot) => !draining.has(slot)).sort((a, b) => a - b)
      return usable
    },
    epoch: (slot) => (draining.has(slot) ? undefined : owned.get(slot)?.epoch),
    get hasFresh() {
      return fresh.length > 0
    },
    takeFresh() {
      const taken = fresh
      fresh = []
      return taken
    },
    gain,
    reconcile(given, now) {
      const epochs = new Map(given.map(({ slot, epoch }) => [slot, epoch]))
      const lost = [...owned].filter(([slot, { epoch }]) => epochs.get(slot) !== epoch).map(([slot]) => slot)
      lost.forEach(lose)
      const gained = given.filter(({ slot }) => !owned.has(slot))
      gain(gained, now)
      return { gained: gained.length, lost: lost.length }
    },
    isolated: (slot) => (owned.get(slot)?.crashes ?? 0) >= crashesUntilIsolated,
    get isolation() {
      return [...owned.values()].filter(({ crashes }) => crashes >= crashesUntilIsolated).length
    },
    suspicion: (slot, eventId) => owned.get(slot)?.suspicions[eventId] ?? 0,
    clean: (now) =>
      [...owned]
        .filter(([, { crashes, suspicions, since }]) => {
          const leases = Object.keys(suspicions).length === 0 ? 1 : leasesForSuspects
          return crashes > 0 && now - since > leaseMs * leases
        })
        .map(([slot]) => slot),
    forgive(slots) {
      for (const slot of slots) {
        const entry = owned.get(slot)
        if (entry !== undefined) Object.assign(entry, { crashes: 0, suspicions: {} })
      }
    },
    acquit(slot, eventId) {
      const entry = owned.get(slot)
      if (entry === undefined || !(eventId in entry.suspicions)) return
      const { [eventId]: _, ...others } = entry.suspicions
      entry.suspicions = others
    },
    drain(count, now, isIdle) {
      // From the top, because claims go from the bottom: what a relay keeps stays one range, which sweeps in one go.
      const candidates = [...owned.keys()].filter((slot) => !draining.has(slot)).sort((a, b) => b - a)
      const rank = (slot: number): number => (isIdle(slot) ? 0 : stuck.has(slot) ? 2 : 1)
      for (const slot of candidates.sort((a, b) => rank(a) - rank(b)).slice(0, count)) draining.set(slot, now)
      usable = undefined
    },
    releasing(slots) {
      for (const slot of slots) draining.set(slot, Infinity)
    },
    keepStuck(now) {
      for (const [slot, since] of draining) {
        if (now - since < leaseMs) continue
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
      owned.clear()
      draining.clear()
      stuck.clear()
      fresh = []
      usable = undefined
    },
  }
}
