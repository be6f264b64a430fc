import { compareIds, smallerId } from '../contract/lane.ts'
import type { EventRow } from '../storage/event-row.ts'
import type { UnknownTries } from './settle.ts'

/**
 * A lane in flight: one that this relay may not start again.
 *
 * running: its run is being published, or its outcomes are being written. Rows of it that turn up are ignored, except
 *   that the smallest id is remembered.
 * settled: its outcomes are committed. It stays in flight until a find that was issued from now on has named it; that
 *   answer goes on with it or frees it. (An answer that was on its way while the settle committed published 33 of
 *   20,000 events again.)
 * While `pauseUntil` lies ahead a settled lane is not named, because the event `next` waits for an uncounted retry. The
 *   pause ends with an answer in which the lane begins behind that event: an operator took it away.
 */
export interface Lane {
  readonly id: string
  readonly slot: number
  readonly epoch: string
  readonly destination: string
  events: number
  bytes: number
  state: 'running' | 'settled'
  /** First id that the run did not settle. */
  next: string
  /** Smallest id that turned up while it was in flight; '0' reads the lane from its start. */
  low: string | null
  /** A find has met it, so that later ones need not read it. */
  met: boolean
  pauseUntil: number
  /** Something of it turned up during its run, so whether that event is still in line has to be looked at, once. */
  turnedUp: boolean
  /** What it counts against its destination: its events, and 1 while it only pauses. */
  weight: number
  unknown: UnknownTries | undefined
  /** The run as it was admitted. */
  rows: readonly EventRow[]
  /** How many of its events went to be settled before the run ended. */
  written: number
  /** Settlements on their way, and whether the run has ended: with none left after its end the lane comes to rest. */
  unsettled: number
  ended: boolean
  /** False once a settlement found the slot owned by someone else. */
  owned: boolean
}

/** A lane whose run is about to start. What it remembers of an uncounted try is kept while its head is the same. */
export function newLane(
  made: Pick<Lane, 'id' | 'slot' | 'epoch' | 'destination' | 'rows'> & { readonly before: Lane | undefined },
): Lane {
  const { id, slot, epoch, destination, rows, before } = made
  const remembered = before?.unknown
  return {
    id,
    slot,
    epoch,
    destination,
    rows,
    events: rows.length,
    bytes: rows.reduce((sum, { size }) => sum + (size ?? 0), 0),
    written: 0,
    unsettled: 0,
    ended: false,
    owned: true,
    state: 'running',
    next: '0',
    low: null,
    met: false,
    pauseUntil: 0,
    turnedUp: false,
    weight: 0,
    unknown: remembered !== undefined && remembered.eventId === rows[0]?.eventId ? remembered : undefined,
  }
}

export interface LaneLimits {
  readonly maxInFlight: number
  readonly maxInFlightBytes: number
  readonly maxInFlightPerDestination: number
  readonly maxRunBytes: number
}

/** What one lane may have in flight, so that a long or slow one leaves room: a part of all events, and a few runs. */
/** Events of one lane in flight at most, so that no more of them are read. */
export function mostOfALane({ maxInFlightPerDestination }: Pick<LaneLimits, 'maxInFlightPerDestination'>): number {
  return Math.max(1, Math.floor(maxInFlightPerDestination / partOfALane))
}

/** From here on, what is found would mostly be passed over. */
const nearlyAll = 0.9
const partOfALane = 5
const runsOfALane = 4

export interface Continuing {
  readonly lane: Lane
  readonly low: string
}

/** The lanes in flight and what they count against the budgets. No I/O and no clock. */
export interface Lanes {
  readonly size: number
  /** Events whose outcome is not written yet. */
  readonly events: number
  /** Rises whenever room comes back. */
  readonly freed: number
  get(id: string): Lane | undefined
  add(lane: Lane): void
  /** Adds a settled lane that was to go on and found no room. It is not named again before some came back. */
  addCramped(lane: Lane): void
  remove(lane: Lane): void
  /** The outcomes of a lane are committed: its events count no more. */
  settled(lane: Lane): void
  /** The first so many events of a lane are settled while its run goes on. */
  progressed(lane: Lane, events: number, bytes: number): void
  /** A row of a lane in flight turned up; `head` is the lane's first event in line, if the answer has it. */
  met(lane: Lane, id: string | null, head: string | undefined): void
  /** Reads every lane in flight from its start, the next time. */
  resetLows(): void
  /**
   * Settled lanes that do not pause, or whose pause may be in vain, and for which there may be room, longest waiting
   * first, at most `limit`.
   */
  continuing(limit: number, now: number): Continuing[]
  /** Settled lanes, whatever their pause. */
  resting(): Lane[]
  busy(): string[]
  /** Whether there is so little room that looking for more would be in vain. */
  crowded(): boolean
  /** The rows of a new run for which there is room: none, or at least one and a fair part of the budgets at most. */
  fitting(rows: readonly EventRow[]): readonly EventRow[]
  /** How many more events may be in flight to a destination. */
  roomFor(destination: string): number
  /** Whether enough of a full destination's share is free again to make a sweep worth while. */
  mostlyFree(destination: string): boolean
  /** When the next pause ends, or null. */
  nextPauseEnd(now: number): number | null
  hasIn(slot: number): boolean
}

export function createLanes(limits: LaneLimits): Lanes {
  const all = new Map<string, Lane>()
  const resting = new Set<Lane>()
  const cramped = new Set<Lane>()
  const perDestination = new Map<string, number>()
  const perSlot = new Map<number, number>()
  let events = 0
  let bytes = 0
  let freed = 0
  /**
   * One large event is in flight beside what is counted. If it had to find room, steady traffic would keep it waiting
   * for ever; if it took most of the room, a slow one would keep everybody else waiting.
   */
  let beside: Lane | undefined
  const large = Math.min(limits.maxRunBytes * runsOfALane, limits.maxInFlightBytes / 2)

  function count(lane: Lane, sign: 1 | -1): void {
    events += sign * lane.events
    if (sign === -1) {
      freed += 1
      cramped.clear()
    }
    if (sign === 1 && lane.events === 1 && lane.bytes > large) beside ??= lane
    if (lane !== beside) bytes += sign * lane.bytes
    else if (sign === -1) beside = undefined
  }

  function weigh(lane: Lane, weight: number): void {
    bump(perDestination, lane.destination, weight - lane.weight)
    lane.weight = weight
  }

  function add(lane: Lane): void {
    all.set(lane.id, lane)
    bump(perSlot, lane.slot, 1)
    if (lane.state === 'settled') resting.add(lane)
    else count(lane, 1)
    weigh(lane, lane.state === 'settled' ? Math.sign(lane.pauseUntil) : lane.events)
  }

  return {
    get size() {
      return all.size
    },
    get events() {
      return events
    },
    get freed() {
      return freed
    },
    get: (id) => all.get(id),
    add,
    addCramped(lane) {
      add(lane)
      cramped.add(lane)
    },
    remove(lane) {
      if (all.get(lane.id) !== lane) return
      all.delete(lane.id)
      cramped.delete(lane)
      bump(perSlot, lane.slot, -1)
      if (!resting.delete(lane)) count(lane, -1)
      weigh(lane, 0)
    },
    settled(lane) {
      if (all.get(lane.id) !== lane || lane.state === 'settled') return
      lane.state = 'settled'
      lane.rows = []
      count(lane, -1)
      weigh(lane, Math.sign(lane.pauseUntil))
      resting.add(lane)
    },
    progressed(lane, settledEvents, settledBytes) {
      if (all.get(lane.id) !== lane || lane.state === 'settled') return
      count(lane, -1)
      lane.events -= settledEvents
      lane.bytes -= settledBytes
      count(lane, 1)
      weigh(lane, lane.events)
    },
    met(lane, id, head) {
      lane.met = true
      if (id !== null) lane.low = lane.low === null ? id : smallerId(lane.low, id)
      if (lane.state === 'running') lane.turnedUp = true
      else if (head !== undefined && !waitsFor(lane, head)) {
        lane.pauseUntil = 0
        weigh(lane, 0)
      }
    },
    resetLows() {
      for (const lane of all.values()) lane.low = '0'
    },
    continuing(limit, now) {
      const chosen: Continuing[] = []
      for (const lane of resting) {
        if (chosen.length >= limit) break
        if ((lane.pauseUntil > now && !lane.turnedUp) || cramped.has(lane)) continue
        chosen.push({ lane, low: lane.low === null ? lane.next : smallerId(lane.low, lane.next) })
      }
      return chosen
    },
    resting: () => [...resting],
    busy() {
      const busy: string[] = []
      for (const lane of all.values()) if (lane.state === 'running' && lane.met) busy.push(lane.id)
      return busy
    },
    crowded: () =>
      events > 0 && (events >= limits.maxInFlight * nearlyAll || bytes >= limits.maxInFlightBytes * nearlyAll),
    fitting(rows) {
      const most = Math.min(mostOfALane(limits), limits.maxInFlight - events)
      const mostBytes = Math.min(limits.maxRunBytes * runsOfALane, limits.maxInFlightBytes - bytes)
      let size = 0
      let taken = 0
      for (const row of rows.slice(0, Math.max(0, most))) {
        size += row.size ?? 0
        // A first event that is larger than a few runs may go alone, without any room if no other such event does.
        const alone = taken === 0 && (size <= limits.maxInFlightBytes - bytes || (size > large && beside === undefined))
        if (size > mostBytes && !alone) break
        taken += 1
      }
      return rows.slice(0, taken)
    },
    roomFor: (destination) => Math.max(0, limits.maxInFlightPerDestination - (perDestination.get(destination) ?? 0)),
    mostlyFree: (destination) => (perDestination.get(destination) ?? 0) * 2 <= limits.maxInFlightPerDestination,
    nextPauseEnd(now) {
      let next: number | null = null
      for (const lane of resting) if (lane.pauseUntil > now) next = Math.min(next ?? lane.pauseUntil, lane.pauseUntil)
      return next
    },
    hasIn: (slot) => perSlot.has(slot),
  }
}

/** Whether a pausing lane with this first event in line waits on: the event of its retry is that one or behind it. */
export function waitsFor({ next }: Lane, head: string): boolean {
  return compareIds(head, next) <= 0
}

function bump<K>(counts: Map<K, number>, key: K, by: number): void {
  const value = (counts.get(key) ?? 0) + by
  if (value === 0) counts.delete(key)
  else counts.set(key, value)
}
