import { compareLanes, firstLane, lastLane } from '../contract/lane.ts'
import type { SlotTable } from './slot-table.ts'

/** One slice of a sweep: a range of lanes. */
export interface Slice {
  readonly from: string
  readonly to: string
  /** The slot it was marked for, or null for the background round. */
  readonly slot: number | null
}

/**
 * Which slots have to be read from the start, and how far that came. Knows no I/O.
 *
 * A slot that is marked while a slice of it is on its way starts again. Beside the marked ones an endless slow round
 * visits every owned slot, so that rows changed by hand in SQL are found too.
 */
export interface Sweeper {
  readonly pending: number
  mark(slot: number): void
  markAll(): void
  /** The next slice of a marked slot. */
  next(): Slice | undefined
  /** The next slice of the background round. */
  background(): Slice | undefined
  /** A slice returned these lanes; it was the last of its range when there are fewer than `limit`. */
  done(slice: Slice, lanes: readonly string[], limit: number): void
  clear(): void
}

interface Mark {
  from: string
}

export function createSweeper(slots: SlotTable): Sweeper {
  const marks = new Map<number, Mark>()
  let underway: Mark | undefined
  let round: string | null = null

  function mark(slot: number): void {
    if (slots.epoch(slot) !== undefined) marks.set(slot, { from: firstLane(slot) })
  }

  /** The lane after the largest one, or null when that was the last of all lanes. */
  function after(lanes: readonly string[], to: string): string | null {
    const largest = lanes.reduce((a, b) => (compareLanes(a, b) > 0 ? a : b))
    return compareLanes(largest, to) >= 0 ? null : (BigInt(largest) + 1n).toString()
  }

  return {
    get pending() {
      return marks.size
    },
    mark,
    markAll() {
      for (const slot of slots.usable()) mark(slot)
    },
    next() {
      for (const [slot, current] of marks) {
        if (slots.epoch(slot) === undefined) {
          marks.delete(slot)
          continue
        }
        underway = current
        return { from: current.from, to: lastLane(slot), slot }
      }
      return undefined
    },
    background() {
      const usable = slots.usable()
      const [first] = usable
      if (first === undefined) return undefined
      let from: string | null = round
      // A range runs over neighbouring slots, so that an idle relay visits all its lanes with one statement.
      let start = usable.find((slot) => from === null || compareLanes(lastLane(slot), from) >= 0)
      if (start === undefined) {
        start = first
        from = null
      }
      let end = start
      while (slots.epoch(end + 1) !== undefined) end += 1
      const lowest = firstLane(start)
      return { from: from === null || compareLanes(from, lowest) < 0 ? lowest : from, to: lastLane(end), slot: null }
    },
    done(slice, lanes, limit) {
      const next = lanes.length < limit ? null : after(lanes, slice.to)
      if (slice.slot === null) {
        round = next ?? (slice.to === lastLane(255) ? null : (BigInt(slice.to) + 1n).toString())
        return
      }
      // Marked again meanwhile: the new mark stands.
      if (marks.get(slice.slot) !== underway) return
      marks.delete(slice.slot)
      if (next !== null) marks.set(slice.slot, { from: next })
    },
    clear() {
      marks.clear()
      round = null
    },
  }
}
