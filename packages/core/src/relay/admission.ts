import { slotOf } from '../contract/lane.ts'
import type { Publisher } from '../contract/publisher.ts'
import type { LaneRows } from '../storage/find.ts'
import { type Breakers, wholePublisher } from './breaker.ts'
import { type Lane, type Lanes, newLane, waitsFor } from './lanes.ts'
import type { Isolation, Turn } from './isolation.ts'
import type { Parking } from './parking.ts'
import { destinationOf } from './publish-run.ts'
import { toEvent } from './relay-event.ts'
import type { SlotTable } from './slot-table.ts'
import type { Sweeper } from './sweeper.ts'

export interface AdmissionContext {
  readonly publisher: Publisher
  readonly lanes: Lanes
  readonly slots: SlotTable
  readonly sweeper: Sweeper
  readonly breakers: Breakers
  readonly parking: Parking
  readonly isolation: Isolation
  /** True while the publisher is connected, the lease holds and the relay is not stopping. */
  readonly open: () => boolean
  readonly start: (lane: Lane) => void
}

/** Decides for each lane that turned up whether its run starts now, and remembers what it passes over. */
export interface Admission {
  /** What a find returned; `before` holds the lanes that it was asked to go on with. */
  offer(found: readonly LaneRows[], before: ReadonlyMap<string, Lane>): void
  /** What a sweep returned. */
  offerSwept(found: readonly LaneRows[]): void
}

export function createAdmission(context: AdmissionContext): Admission {
  const { publisher, lanes, slots, sweeper, breakers, parking, isolation } = context
  /** Slots with a newcomer that found no room: swept once some came back, and not over and over until then. */
  const cramped = new Set<number>()
  let freed = 0

  function offerOne(
    { lane: id, first, rows }: LaneRows,
    before: Lane | undefined,
    chosenBy: Turn['chosenBy'] = 'find',
  ): void {
    const [head] = rows
    const inFlight = lanes.get(id)
    if (inFlight !== undefined) {
      lanes.met(inFlight, first, head?.id)
      return
    }
    const slot = slotOf(id)
    const epoch = slots.epoch(slot)
    if (head === undefined || epoch === undefined) return
    if (before !== undefined && before.pauseUntil > performance.now() && waitsFor(before, head.id)) {
      lanes.add({ ...waitingLane(before, first), turnedUp: false })
      return
    }
    const where = destinationOf(toEvent(head), publisher)
    // An event whose destination cannot be told fails when its run starts; no breaker is asked.
    const destination = typeof where === 'string' ? where : ''
    if (!context.open()) {
      parking.park(destination, slot)
      return
    }
    const fitting = lanes.fitting(rows)
    if (fitting.length === 0) {
      // What was going on already waits in memory behind the newcomers; a newcomer is swept for later.
      if (before === undefined) cramped.add(slot)
      else lanes.addCramped(waitingLane(before, first))
      return
    }
    // Lanes that were passed over for want of room come first: one that went on until now waits with them.
    const contested = before !== undefined && parking.isWaiting(destination)
    const share = contested ? 0 : lanes.roomFor(destination)
    const turn = isolation.applies(slot) ? { slot, lane: id, eventId: head.eventId, chosenBy } : undefined
    if (turn !== undefined) {
      // A slot that is going to be swept is left to the sweep, which sees all of its lanes.
      if (chosenBy === 'find' && sweeper.has(slot)) return
      if (!isolation.mayStart(turn, performance.now())) return
    }
    if (share === 0 || breakers.admit(destination, id, performance.now()) === 'wait') {
      parking.park(destination, slot)
      return
    }
    if (turn !== undefined) isolation.start(turn)
    const most = turn === undefined ? share : 1
    const lane = newLane({ id, slot, epoch, destination, rows: fitting.slice(0, most), before })
    lanes.add(lane)
    context.start(lane)
  }

  return {
    offer(found, before) {
      if (lanes.freed > freed) {
        freed = lanes.freed
        for (const slot of cramped) sweeper.mark(slot)
        cramped.clear()
      }
      const inTurn = isolation.order(found)
      for (const lane of inTurn) if (!before.has(lane.lane)) offerOne(lane, undefined)
      for (const lane of inTurn) {
        const known = before.get(lane.lane)
        if (known !== undefined) offerOne(lane, known)
      }
    },
    offerSwept(found) {
      for (const lane of isolation.order(found)) offerOne(lane, undefined, 'sweep')
    },
  }
}

/** The same settled lane once more, read from as far back as this answer reached. */
function waitingLane(before: Lane, first: string | null): Lane {
  return { ...before, state: 'settled', weight: 0, low: first === null ? before.low : '0' }
}

/** The slots to sweep now that a destination answers again; a breaker of the whole publisher held everything back. */
export function releaseParked(parking: Parking, destination: string): number[] {
  return destination === wholePublisher
    ? parking.destinations().flatMap((each) => parking.release(each))
    : parking.release(destination)
}
