import { describe, expect, it } from 'vitest'
import { firstLane } from '../../src/contract/lane.ts'
import { createIsolation, type Isolation } from '../../src/relay/isolation.ts'
import { createSlotTable } from '../../src/relay/slot-table.ts'

/** Slots 1 to 4, of which 4 is sound; in slot 1 the event `guilty` was there in two crashes. */
function isolated(): Isolation {
  const slots = createSlotTable({ leaseMs: 1000 })
  const owned = (slot: number, crashes: number, suspicions = {}) => ({ slot, epoch: '1', crashes, suspicions })
  slots.gain([owned(1, 3, { guilty: 2 }), owned(2, 3), owned(3, 3), owned(4, 1)], 0)
  return createIsolation(slots)
}

const turn = (slot: number, eventId: string, chosenBy: 'find' | 'sweep' = 'sweep', lane = laneOf(slot)) => ({
  slot,
  lane,
  eventId,
  chosenBy,
})
const laneOf = (slot: number, number = 0): string => (BigInt(firstLane(slot)) + BigInt(number)).toString()

function starts(isolation: Isolation, given: ReturnType<typeof turn>, now = 0): boolean {
  const may = isolation.mayStart(given, now)
  if (may) isolation.start(given)
  return may
}

describe('an isolated slot', () => {
  it('is one whose owners crashed twice in a row', () => {
    const isolation = isolated()
    expect([1, 2, 3, 4, 5].map((slot) => isolation.applies(slot))).toEqual([true, true, true, false, false])
  })

  it('publishes one event at a time, beside other slots', () => {
    const isolation = isolated()
    expect(starts(isolation, turn(2, 'a'))).toBe(true)
    expect(starts(isolation, turn(2, 'b', 'sweep', laneOf(2, 1)))).toBe(false)
    expect(starts(isolation, turn(3, 'c'))).toBe(true)
    expect(isolation.waiting).toBe(1)
    expect(isolation.ended(laneOf(2), 2)).toEqual({ eventId: 'a', through: false, next: [2] })
    expect(isolation.waiting).toBe(0)
  })

  it('leaves the choice to a sweep while lanes of it wait, and to the one that waited longest', () => {
    const isolation = isolated()
    expect(starts(isolation, turn(2, 'a'))).toBe(true)
    expect(starts(isolation, turn(2, 'b', 'sweep', laneOf(2, 1)))).toBe(false)
    expect(starts(isolation, turn(2, 'c', 'find', laneOf(2, 2)))).toBe(false)
    isolation.ended(laneOf(2), 2)
    const head = (lane: string) => ({ lane, first: '1', rows: [{ eventId: 'x' } as never] })
    const offered = [head(laneOf(2)), head(laneOf(2, 1)), head(laneOf(4))]
    expect(isolation.order(offered).map(({ lane }) => lane)).toEqual([laneOf(2, 1), laneOf(4), laneOf(2)])
  })
})

describe('a suspected event', () => {
  it('comes first in an answer', () => {
    const isolation = isolated()
    const lane = (id: string, eventId: string) => ({ lane: id, first: '1', rows: [{ eventId } as never] })
    const order = isolation.order([lane(laneOf(2), 'a'), lane(laneOf(1), 'guilty')])
    expect(order.map((each) => each.lane)).toEqual([laneOf(1), laneOf(2)])
  })

  it('is published with nothing of the isolated slots beside it', () => {
    const isolation = isolated()
    expect(starts(isolation, turn(1, 'guilty'))).toBe(true)
    expect(starts(isolation, turn(2, 'a'))).toBe(false)
    isolation.cameThrough(laneOf(1))
    expect(isolation.ended(laneOf(1), 1)).toEqual({ eventId: 'guilty', through: true, next: [2] })
    expect(starts(isolation, turn(2, 'a'))).toBe(true)
  })

  it('waits for what is being published, and nothing else starts before it', () => {
    const isolation = isolated()
    expect(starts(isolation, turn(2, 'a'))).toBe(true)
    expect(starts(isolation, turn(1, 'guilty'))).toBe(false)
    expect(starts(isolation, turn(3, 'c'))).toBe(false)
    expect(isolation.ended(laneOf(2), 2)?.next).toEqual([1])
    expect(starts(isolation, turn(3, 'c'))).toBe(false)
    expect(starts(isolation, turn(1, 'guilty'))).toBe(true)
    expect(isolation.ended(laneOf(1), 1)?.next).toEqual([3])
  })

  it('that does not turn up again keeps the others waiting for a second at most', () => {
    const isolation = isolated()
    expect(starts(isolation, turn(2, 'a'), 500)).toBe(true)
    expect(starts(isolation, turn(1, 'guilty'), 500)).toBe(false)
    expect(starts(isolation, turn(3, 'c'), 500)).toBe(false)
    isolation.ended(laneOf(2), 2)
    expect(isolation.dueAt()).toBe(1500)
    expect(isolation.overdue(1499)).toEqual([])
    expect(isolation.overdue(1500)).toEqual([3])
    expect(starts(isolation, turn(3, 'c'), 1500)).toBe(true)
  })

  it('whose slot was lost keeps nobody waiting', () => {
    const isolation = isolated()
    expect(starts(isolation, turn(2, 'a'))).toBe(true)
    expect(starts(isolation, turn(1, 'guilty'))).toBe(false)
    isolation.forget([1])
    isolation.ended(laneOf(2), 2)
    isolation.overdue(1)
    expect(starts(isolation, turn(3, 'c'))).toBe(true)
  })
})
