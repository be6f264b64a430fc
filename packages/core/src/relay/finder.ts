import type { RelaySignal } from '../contract/signals.ts'
import { dueStatement } from '../storage/due.ts'
import { findStatement, type Found, maxArrivals, readFound, type Snapshot } from '../storage/find.ts'
import { maxRowsOfALane } from '../storage/lane-run.ts'
import type { Names } from '../storage/names.ts'
import { readSnapshot, snapshotStatement } from '../storage/snapshot.ts'
import { readSwept, sweepStatement } from '../storage/sweep.ts'
import type { Admission } from './admission.ts'
import { type Lane, type Lanes, mostOfALane } from './lanes.ts'
import type { Session } from './session.ts'
import type { SlotTable } from './slot-table.ts'
import type { Slice, Sweeper } from './sweeper.ts'

export interface FinderOptions {
  readonly session: Session
  readonly names: Names
  readonly topics: readonly string[] | null
  readonly lanes: Lanes
  readonly slots: SlotTable
  readonly sweeper: Sweeper
  readonly admission: Admission
  readonly emit: (signal: RelaySignal) => void
  readonly findLimit: number
  /** Events of one lane in one call of the publisher. */
  readonly maxRun: number
  readonly maxInFlight: number
  readonly maxInFlightPerDestination: number
  readonly sweepIntervalMs: number
}

export interface StepResult {
  /** Something was found or went on, so the next step should follow at once. */
  readonly worked: boolean
  /** How long the loop may wait at most before something is due, in ms. */
  readonly waitMs: number
  /** Nothing is in line that this relay could publish now, and nothing is due. */
  readonly idle: boolean
}

export interface Finder {
  /** One round of due, find and sweep. Rejects when the database cannot be used; the next step starts afresh. */
  step(): Promise<StepResult>
}

/** Rows in one answer; no answer grows with the backlog. */
const maxRows = 2000
const maxSweepLanes = 500
/** What find may go on with at once: more would make the answer large without making anything faster. */
const maxContinuing = 1000
/** Runs of one lane in one answer: with one, a single hot key spends most of its time in finds of 100 rows. */
const runsAhead = 10
/** What is due but locked by someone else is tried again only so often. */
const dueRetryMs = 200

export function createFinder(options: FinderOptions): Finder {
  const { session, names, topics, lanes, slots, sweeper, admission, emit } = options
  const findSql = findStatement(names)
  const dueSql = dueStatement(names)
  const sweepSql = sweepStatement(names)
  // A long lane is read several runs ahead; strictly head by head means no further than the head.
  const rowsOfALane =
    options.maxRun === 1 ? 1 : Math.min(options.maxRun * runsAhead, mostOfALane(options), maxRowsOfALane)
  let known: { snapshot: Snapshot; started: string; generation: number } | undefined
  let sweepAll = false
  let dueAt = Infinity
  let dueNotBefore = 0
  let backgroundAt = 0

  /**
   * A snapshot is never compared across a connection or a server: after a failover it would say nothing. Everything in
   * flight is read from its start again, and every owned slot is swept after the first find.
   */
  async function startAfresh(): Promise<void> {
    known = undefined
    lanes.resetLows()
    const { rows } = await session.run(snapshotStatement)
    known = { ...readSnapshot(rows), generation: session.generation }
    sweepAll = true
  }

  function chooseContinuing(): { before: Map<string, Lane>; lanes: string[]; lows: string[] } {
    const before = new Map<string, Lane>()
    const lows: string[] = []
    for (const { lane, low } of lanes.continuing(maxContinuing, performance.now())) {
      if (slots.epoch(lane.slot) !== lane.epoch) {
        // The slot moved, or is being given up. If it is ours again, the sweep of the regained slot passed this lane over.
        lanes.remove(lane)
        sweeper.mark(lane.slot)
        continue
      }
      before.set(lane.id, lane)
      lows.push(low)
    }
    return { before, lanes: [...before.keys()], lows }
  }

  async function find(): Promise<{ found: Found; before: ReadonlyMap<string, Lane> } | undefined> {
    if (known === undefined) return undefined
    const { snapshot, started, generation } = known
    const continuing = chooseContinuing()
    const fresh = slots.takeFresh()
    const began = performance.now()
    const { rows } = await session.run(
      findSql({
        previous: snapshot,
        arrivals: Math.min(options.findLimit, maxArrivals),
        slots: slots.usable(),
        topics,
        lanes: continuing.lanes,
        lows: continuing.lows,
        rowsOfALane,
        busy: lanes.busy(),
        rows: roomForRows(),
      }),
    )
    const found = readFound(rows)
    if (
      session.generation !== generation ||
      found.started !== started ||
      BigInt(found.snapshot.xmax) < BigInt(snapshot.xmax)
    ) {
      // Another server, or another session: nothing of this answer is used.
      for (const slot of fresh) sweeper.mark(slot)
      known = undefined
      return undefined
    }
    known = { snapshot: found.snapshot, started, generation }
    for (const slot of fresh) sweeper.mark(slot)
    emit({ kind: 'found', lanes: found.lanes.length, durationMs: performance.now() - began, hit: found.hit })
    return { found, before: continuing.before }
  }

  function apply(found: Found, before: ReadonlyMap<string, Lane>): void {
    // Before the named lanes leave: one that finds no room now is read from its start the next time too.
    if (found.hit) {
      lanes.resetLows()
      sweeper.markAll()
    }
    // Only this answer may go on with these lanes, and it frees those that have nothing left.
    for (const lane of before.values()) lanes.remove(lane)
    if (sweepAll) {
      sweepAll = false
      sweeper.markAll()
    }
    dueAt = found.nextDueMs === null ? Infinity : Math.max(performance.now() + found.nextDueMs, dueNotBefore)
    admission.offer(found.lanes, before)
  }

  async function sweep(slice: Slice): Promise<number> {
    const limit = Math.min(maxSweepLanes, Math.max(1, options.maxInFlight - lanes.events))
    const { rows } = await session.run(
      sweepSql({ from: slice.from, to: slice.to, lanes: limit, rowsOfALane, topics, rows: roomForRows() }),
    )
    const found = readSwept(rows)
    sweeper.done(
      slice,
      found.map(({ lane }) => lane),
      limit,
    )
    admission.offerSwept(found)
    return found.length
  }

  function roomForRows(): number {
    return Math.max(1, Math.min(maxRows, options.maxInFlight - lanes.events))
  }

  return {
    async step() {
      if (lanes.crowded()) return { worked: false, waitMs: Infinity, idle: false }
      try {
        return await round()
      } catch (error) {
        // Slots may have been gained and lanes passed over for an answer that never came.
        known = undefined
        throw error
      }
    },
  }

  async function round(): Promise<StepResult> {
    // Only here, with no answer on its way: one that is older than the drain could bring rows of a lane that was freed.
    slots.keepStuck(performance.now())
    if (known === undefined || session.generation !== known.generation) await startAfresh()
    let promoted = 0
    if (performance.now() >= dueAt) {
      promoted = (await session.run(dueSql())).affected
      dueNotBefore = promoted > 0 ? 0 : performance.now() + dueRetryMs
    }
    const result = await find()
    if (result === undefined) return { worked: true, waitMs: 0, idle: false }
    apply(result.found, result.before)

    let swept = 0
    const slice = lanes.crowded() ? undefined : sweeper.next()
    if (slice !== undefined) swept = (await sweep(slice)) + 1
    else if (performance.now() >= backgroundAt && !lanes.crowded()) {
      backgroundAt = performance.now() + options.sweepIntervalMs
      const round = sweeper.background()
      if (round !== undefined) await sweep(round)
    }
    const now = performance.now()
    const worked = promoted > 0 || result.found.lanes.length > 0 || result.before.size > 0 || swept > 0
    const pauseEnd = lanes.nextPauseEnd(now) ?? Infinity
    return {
      worked,
      waitMs: Math.max(0, Math.min(dueAt, pauseEnd) - now),
      idle: !worked && lanes.size === 0 && sweeper.pending === 0 && !slots.hasFresh && dueAt > now,
    }
  }
}
