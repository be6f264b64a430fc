import type { LaneRows } from '../storage/find.ts'
import { slotOf } from '../contract/lane.ts'
import type { SlotTable } from './slot-table.ts'

/** An event that was being published in so many crashes is the reason for them. */
export const crashesUntilFailed = 3

/** How long everything else of the isolated slots waits for a suspected event at most, in ms. It may be gone. */
const preferenceMs = 1000

/**
 * Finds the event that kills the process which publishes it. Knows no I/O and no clock.
 *
 * A slot whose owners crashed twice in a row is isolated: one of its events is published at a time, and is written down
 * as the suspect before. Different slots go on beside each other, so a crash leaves a suspect in each of them. An event
 * that was the suspect of a crash already is then published alone, with nothing else of the isolated slots beside it,
 * and before them: so an innocent one is cleared by the next try, and only the guilty one is there three times.
 * A slot that was owned for a whole lease without a crash is isolated no more.
 */
export interface Isolation {
  applies(slot: number): boolean
  /** Lanes that were passed over here. */
  readonly waiting: number
  /** Puts the lanes of an answer in the order in which they get their turn. */
  order(found: readonly LaneRows[]): readonly LaneRows[]
  /**
   * May this event of an isolated slot be published now? When not, its slot is remembered. In a slot with lanes that
   * wait only a sweep chooses, because only it sees all of them.
   */
  mayStart(turn: Turn, now: number): boolean
  start(turn: Turn): void
  /** The event is published, or was answered for, and the process lives. */
  cameThrough(lane: string): void
  /** The lane came to rest or left. Returns what it published, when it was isolated. */
  ended(lane: string, slot: number): Ended | undefined
  /** Slots to sweep, because the suspected event they wait for did not turn up. */
  overdue(now: number): number[]
  /** When `overdue` has something to say, Infinity for never. */
  dueAt(): number
  /** These slots are isolated no more, or belong to someone else. Returns those in which lanes wait. */
  forget(slots: readonly number[]): number[]
}

export interface Turn {
  readonly slot: number
  readonly lane: string
  readonly eventId: string
  readonly chosenBy: 'find' | 'sweep'
}

export interface Ended {
  readonly eventId: string
  readonly through: boolean
  /** Slots to sweep now. */
  readonly next: readonly number[]
}

interface Running {
  readonly lane: string
  readonly eventId: string
  readonly alone: boolean
  through: boolean
}

export function createIsolation(slots: SlotTable): Isolation {
  const running = new Map<number, Running>()
  const waiting = new Set<number>()
  /** When each lane of an isolated slot had its last turn. */
  const turns = new Map<string, number>()
  let turn = 0
  let preferred: { readonly slot: number; readonly until: number } | undefined

  const applies = (slot: number): boolean => slots.isolated(slot)

  function takeWaiting(): number[] {
    const taken = [...waiting]
    waiting.clear()
    return taken
  }

  function rank({ lane, rows: [head] }: LaneRows): number {
    const slot = slotOf(lane)
    if (head === undefined || !applies(slot)) return 0
    return slots.suspicion(slot, head.eventId) > 0 ? -1 : (turns.get(lane) ?? 0)
  }

  return {
    applies,
    get waiting() {
      return waiting.size
    },
    order(found) {
      return found.some(({ lane }) => applies(slotOf(lane))) ? [...found].sort((a, b) => rank(a) - rank(b)) : found
    },
    mayStart({ slot, eventId, chosenBy }, now) {
      const alone = slots.suspicion(slot, eventId) > 0
      const others = [...running.values()]
      const blocked = others.some((other) => alone || other.alone)
      if (alone && blocked) preferred ??= { slot, until: now + preferenceMs }
      const free =
        !blocked &&
        !running.has(slot) &&
        (alone || preferred === undefined) &&
        (chosenBy === 'sweep' || !waiting.has(slot))
      if (!free) waiting.add(slot)
      return free
    },
    start({ slot, lane, eventId }) {
      if (preferred?.slot === slot) preferred = undefined
      running.set(slot, { lane, eventId, alone: slots.suspicion(slot, eventId) > 0, through: false })
      turn += 1
      turns.set(lane, turn)
    },
    cameThrough(lane) {
      for (const entry of running.values()) if (entry.lane === lane) entry.through = true
    },
    ended(lane, slot) {
      const entry = running.get(slot)
      if (entry?.lane !== lane) return undefined
      running.delete(slot)
      const { eventId, through } = entry
      if (preferred === undefined) return { eventId, through, next: takeWaiting() }
      const first = running.size === 0 && waiting.delete(preferred.slot) ? [preferred.slot] : []
      return { eventId, through, next: first }
    },
    overdue(now) {
      if (preferred === undefined || now < preferred.until) return []
      preferred = undefined
      return takeWaiting()
    },
    dueAt: () => preferred?.until ?? Infinity,
    forget(given) {
      if (running.size === 0 && waiting.size === 0) turns.clear()
      if (preferred !== undefined && given.includes(preferred.slot)) preferred = { ...preferred, until: 0 }
      return given.filter((slot) => waiting.delete(slot))
    },
  }
}
