import { compareLanes, firstLane, lastLane, slotOf } from '../contract/lane.ts'
import type { SlotTable } from './slot-table.ts'

/** One slice of a sweep: a range of lanes. */
export interface Slice {
  readonly from: string
  readonly to: string
}

/**
 * Which slots have to be read from the start, and how far that came. Knows no I/O.
 *
 * A slot that is marked while a slice of it is on its way starts again. Neighbouring marked slots are one range, so
 * that a relay without a backlog sweeps everything with one statement. Beside the marked slots an endless slow round
 * visits every owned one, so that rows changed by hand in SQL are found too.
 */
export interface Sweeper {
  readonly pending: number
  /** Whether a slot is going to be read from some lane on. */
  has(slot: number): boolean
  mark(slot: number): void
  markAll(): void
  /** The next slice of the marked slots. */
  next(): Slice | undefined
  /** The next slice of the background round. */
  background(): Slice | undefined
  /** A slice returned these lanes; it was the last of its range when there are fewer than `limit`. */
  done(slice: Slice, lanes: readonly string[], limit: number): void
}

/** Where the sweep of a marked slot goes on. A new object for each mark, so that a slice knows what it was made for. */
interface Mark {
  readonly from: string
}

export function createSweeper(slots: SlotTable): Sweeper {
  const marks = new Map<number, Mark>()
  let underway: ReadonlyMap<number, Mark> = new Map()
  let round: Slice | undefined
  let roundFrom: string | undefined
  let position = 0

  function mark(slot: number): void {
    if (slots.epoch(slot) !== undefined) marks.set(slot, { from: firstLane(slot) })
  }

  return {
    get pending() {
      return marks.size
    },
    has: (slot) => marks.has(slot),
    mark,
    markAll() {
      for (const slot of slots.usable()) mark(slot)
    },
    next() {
      for (const slot of marks.keys()) if (slots.epoch(slot) === undefined) marks.delete(slot)
      // On from where the last slice ended, so that what is left of its last slot begins the next range.
      const marked = [...marks.keys()].sort((a, b) => a - b)
      const first = marked.find((slot) => slot >= position) ?? marked[0]
      const start = first === undefined ? undefined : marks.get(first)
      if (first === undefined || start === undefined) return undefined
      const { from } = start
      const range = new Map([[first, start]])
      for (let slot = first + 1; ; slot++) {
        const neighbour = marks.get(slot)
        if (neighbour?.from !== firstLane(slot)) break
        range.set(slot, neighbour)
      }
      underway = range
      return { from, to: lastLane(first + range.size - 1) }
    },
    background() {
      const usable = slots.usable()
      const from = roundFrom ?? firstLane(0)
      const start = usable.find((slot) => compareLanes(lastLane(slot), from) >= 0) ?? usable[0]
      if (start === undefined) return undefined
      let end = start
      while (slots.epoch(end + 1) !== undefined) end += 1
      round = { from: slotOf(from) === start ? from : firstLane(start), to: lastLane(end) }
      return round
    },
    done(slice, lanes, limit) {
      const largest = lanes.length < limit ? undefined : lanes.reduce((a, b) => (compareLanes(a, b) > 0 ? a : b))
      const next = largest === undefined || largest === slice.to ? undefined : (BigInt(largest) + 1n).toString()
      if (slice === round) {
        const end = slotOf(slice.to)
        roundFrom = next ?? (end === 255 ? undefined : firstLane(end + 1))
        return
      }
      const reached = next === undefined ? slotOf(slice.to) + 1 : slotOf(next)
      position = reached
      for (const [slot, made] of underway) {
        // Marked again meanwhile: the new mark stands.
        if (marks.get(slot) !== made || slot > reached) continue
        marks.delete(slot)
        if (slot === reached && next !== undefined) marks.set(slot, { from: next })
      }
    },
  }
}
