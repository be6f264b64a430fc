import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compareLanes, firstLane, lastLane, slotOf } from '../../src/contract/lane.ts'
import { createSlotTable, type SlotTable } from '../../src/relay/slot-table.ts'
import { createSweeper, type Slice, type Sweeper } from '../../src/relay/sweeper.ts'

function owning(slots: Iterable<number>): SlotTable {
  const table = createSlotTable({ leaseMs: 1000 })
  table.gain(
    [...slots].map((slot) => ({ slot, epoch: '1', crashes: 0, suspicions: {} })),
    0,
  )
  return table
}

/** What the database answers: the lanes of a slice in order, at most `limit`. */
function answer(lanes: readonly string[], { from, to }: Slice, limit: number): string[] {
  return lanes.filter((lane) => compareLanes(from, lane) <= 0 && compareLanes(lane, to) <= 0).slice(0, limit)
}

function step(sweeper: Sweeper, lanes: readonly string[], limit: number): string[] | undefined {
  const slice = sweeper.next()
  if (slice === undefined) return undefined
  const found = answer(lanes, slice, limit)
  sweeper.done(slice, found, limit)
  return found
}

const slotSet = fc.uniqueArray(fc.integer({ min: 0, max: 255 }), { minLength: 1, maxLength: 40 })
/** Few slots and their edges, so that ranges meet, break and end in every way. */
const crowdedSlots = fc.uniqueArray(fc.oneof(fc.integer({ min: 0, max: 8 }), fc.integer({ min: 250, max: 255 })), {
  minLength: 1,
  maxLength: 15,
})
const laneIn = (slot: number): fc.Arbitrary<string> =>
  fc.oneof(
    fc.constantFrom(firstLane(slot), lastLane(slot)),
    fc.bigInt({ min: BigInt(firstLane(slot)), max: BigInt(lastLane(slot)) }).map(String),
  )
const world = fc.oneof(slotSet, crowdedSlots).chain((slots) =>
  fc.record({
    slots: fc.constant(slots),
    lanes: fc
      .uniqueArray(
        fc
          .integer({ min: 0, max: 255 })
          .chain((any) => fc.oneof(fc.constantFrom(...slots), fc.constant(any)))
          .chain(laneIn),
        { maxLength: 60 },
      )
      .map((lanes) => lanes.sort(compareLanes)),
    limit: fc.integer({ min: 1, max: 7 }),
  }),
)

describe('a sweep', () => {
  it('visits every lane of the marked slots once, and ends', () => {
    fc.assert(
      fc.property(world, ({ slots, lanes, limit }) => {
        const sweeper = createSweeper(owning(slots))
        sweeper.markAll()
        const visited: string[] = []
        for (let found = step(sweeper, lanes, limit); found !== undefined; found = step(sweeper, lanes, limit)) {
          visited.push(...found)
          expect(visited.length).toBeLessThanOrEqual(lanes.length)
        }
        expect(visited.sort(compareLanes)).toEqual(lanes.filter((lane) => slots.includes(slotOf(lane))))
        expect(sweeper.pending).toBe(0)
      }),
    )
  })

  it('asks for nothing outside the owned slots', () => {
    fc.assert(
      fc.property(world, ({ slots, lanes, limit }) => {
        const sweeper = createSweeper(owning(slots))
        sweeper.markAll()
        for (let slice = sweeper.next(); slice !== undefined; slice = sweeper.next()) {
          for (let slot = slotOf(slice.from); slot <= slotOf(slice.to); slot++) expect(slots).toContain(slot)
          sweeper.done(slice, answer(lanes, slice, limit), limit)
        }
      }),
    )
  })

  it('starts a slot again that was marked meanwhile, even while a slice of it is on its way', () => {
    const marks = fc.array(fc.record({ after: fc.nat(30), slot: fc.nat(300), underway: fc.boolean() }), {
      maxLength: 5,
    })
    fc.assert(
      fc.property(world, marks, ({ slots, lanes, limit }, again) => {
        const sweeper = createSweeper(owning(slots))
        sweeper.markAll()
        /** For each slot, what was visited since its last mark. */
        const visited = new Map(slots.map((slot) => [slot, new Set<string>()]))
        const mark = (number: number): void => {
          const slot = slots[number % slots.length] ?? 0
          sweeper.mark(slot)
          visited.get(slot)?.clear()
        }
        for (let round = 0; ; round++) {
          const due = again.filter(({ after }) => after === round)
          for (const { slot } of due.filter(({ underway }) => !underway)) mark(slot)
          const slice = sweeper.next()
          if (slice === undefined && round > 30) break
          if (slice === undefined) continue
          const found = answer(lanes, slice, limit)
          for (const lane of found) visited.get(slotOf(lane))?.add(lane)
          for (const { slot } of due.filter(({ underway }) => underway)) mark(slot)
          sweeper.done(slice, found, limit)
          expect(round).toBeLessThan(1000)
        }
        for (const slot of slots)
          expect([...(visited.get(slot) ?? [])].sort(compareLanes)).toEqual(
            lanes.filter((lane) => slotOf(lane) === slot),
          )
      }),
    )
  })

  it('reads neighbouring slots with one statement', () => {
    const sweeper = createSweeper(owning(Array.from({ length: 256 }, (_, slot) => slot)))
    sweeper.markAll()
    expect(sweeper.next()).toEqual({ from: firstLane(0), to: lastLane(255) })
  })

  it('takes no mark for a slot that is not owned, and forgets one that was lost', () => {
    const table = owning([3, 4])
    const sweeper = createSweeper(table)
    sweeper.mark(9)
    expect(sweeper.pending).toBe(0)
    sweeper.markAll()
    table.lose(3)
    table.drain(1, 0, () => false)
    expect(sweeper.next()).toBeUndefined()
    expect(sweeper.pending).toBe(0)
  })
})

describe('the background round', () => {
  it('visits every lane of the owned slots again and again, for ever', () => {
    fc.assert(
      fc.property(world, ({ slots, lanes, limit }) => {
        const sweeper = createSweeper(owning(slots))
        const mine = lanes.filter((lane) => slots.includes(slotOf(lane)))
        for (let round = 0; round < 3; round++) {
          const visited = new Set<string>()
          // One slice per lane that fills a slice, and one for each range: more are never needed for a whole round.
          for (let left = mine.length + slots.length + 1; left > 0; left--) {
            const slice = sweeper.background()
            if (slice === undefined) throw new Error('there is always something to visit')
            const found = answer(lanes, slice, limit)
            for (const lane of found) visited.add(lane)
            sweeper.done(slice, found, limit)
          }
          expect([...visited].sort(compareLanes)).toEqual(mine)
        }
      }),
    )
  })

  it('goes on while the slots change, without missing a lane that stays', () => {
    const change = fc.record({ lose: fc.nat(300), gain: fc.integer({ min: 0, max: 255 }) })
    fc.assert(
      fc.property(world, fc.array(change, { maxLength: 10 }), ({ slots, lanes, limit }, changes) => {
        const [kept = 0, ...others] = slots
        const table = owning(slots)
        const sweeper = createSweeper(table)
        const visited = new Set<string>()
        const visit = (): void => {
          const slice = sweeper.background()
          if (slice === undefined) return
          const found = answer(lanes, slice, limit)
          for (const lane of found) visited.add(lane)
          sweeper.done(slice, found, limit)
        }
        for (const { lose, gain } of changes) {
          visit()
          const lost = others[lose % Math.max(1, others.length)]
          if (lost !== undefined) table.lose(lost)
          table.gain([{ slot: gain, epoch: '2', crashes: 0, suspicions: {} }], 0)
        }
        visited.clear()
        for (let left = lanes.length + slots.length + changes.length + 2; left > 0; left--) visit()
        const mine = lanes.filter((lane) => table.epoch(slotOf(lane)) !== undefined)
        expect([...visited].sort(compareLanes)).toEqual(mine)
        expect(table.epoch(kept)).toBeDefined()
      }),
    )
  })

  it('leaves the marks of a sweep alone', () => {
    const sweeper = createSweeper(owning([1, 2]))
    sweeper.mark(2)
    const slice = sweeper.background()
    sweeper.done(slice as Slice, [], 5)
    expect(sweeper.next()).toEqual({ from: firstLane(2), to: lastLane(2) })
  })

  it('has nothing to visit without a slot', () => {
    expect(createSweeper(owning([])).background()).toBeUndefined()
  })
})
