import { describe, expect, it } from 'vitest'
import type { EventRow } from '../../src/storage/event-row.ts'
import { createLanes, type Lane, type LaneLimits } from '../../src/relay/lanes.ts'

const limits: LaneLimits = { maxInFlight: 10, maxInFlightBytes: 100, maxInFlightPerDestination: 6, maxRunBytes: 100 }

function lane(id: string, changes: Partial<Lane> = {}): Lane {
  return {
    id,
    slot: 3,
    epoch: '1',
    destination: 'orders',
    events: 2,
    bytes: 20,
    state: 'running',
    next: '5',
    low: null,
    met: false,
    pauseUntil: 0,
    turnedUp: false,
    weight: 0,
    unknown: undefined,
    rows: [],
    written: 0,
    unsettled: 0,
    ended: false,
    owned: true,
    ...changes,
  }
}

describe('a lane in flight', () => {
  it('counts its events until its outcomes are written, and stays in flight after that', () => {
    const lanes = createLanes(limits)
    const one = lane('1')
    lanes.add(one)
    expect([lanes.size, lanes.events]).toEqual([1, 2])
    expect(lanes.continuing(10, 0)).toEqual([])
    lanes.settled(one)
    expect([lanes.size, lanes.events, one.state]).toEqual([1, 0, 'settled'])
    expect(lanes.continuing(10, 0)).toEqual([{ lane: one, low: '5' }])
    lanes.remove(one)
    expect([lanes.size, lanes.events, lanes.get('1')]).toEqual([0, 0, undefined])
  })

  it('is counted once, however often it is settled or removed', () => {
    const lanes = createLanes(limits)
    const [one, two] = [lane('1'), lane('2')]
    lanes.add(one)
    lanes.add(two)
    lanes.settled(one)
    lanes.settled(one)
    lanes.remove(one)
    lanes.remove(one)
    lanes.settled(one)
    expect([lanes.size, lanes.events]).toEqual([1, 2])
  })

  it('leaves a successor of the same name alone when an earlier one ends', () => {
    const lanes = createLanes(limits)
    const [earlier, later] = [lane('1'), lane('1')]
    lanes.add(earlier)
    lanes.remove(earlier)
    lanes.add(later)
    lanes.remove(earlier)
    lanes.settled(earlier)
    expect(lanes.get('1')).toBe(later)
    expect(lanes.events).toBe(2)
  })

  it('is read on from the smallest id that turned up meanwhile, not from where its run ended', () => {
    const lanes = createLanes(limits)
    const one = lane('1', { next: '100' })
    lanes.add(one)
    lanes.met(one, '200', undefined)
    lanes.met(one, '99', undefined)
    lanes.met(one, '1000', undefined)
    lanes.met(one, null, undefined)
    lanes.settled(one)
    expect(lanes.continuing(1, 0)[0]?.low).toBe('99')
    lanes.resetLows()
    expect(lanes.continuing(1, 0)[0]?.low).toBe('0')
  })

  it('is named to finds only until one has met it', () => {
    const lanes = createLanes(limits)
    const [one, two] = [lane('1'), lane('2')]
    lanes.add(one)
    lanes.add(two)
    lanes.met(one, null, undefined)
    expect(lanes.busy()).toEqual(['1'])
    lanes.settled(one)
    expect(lanes.busy()).toEqual([])
  })

  it('waits for the end of its pause while others go on', () => {
    const lanes = createLanes(limits)
    const [paused, other] = [lane('1'), lane('2')]
    for (const each of [paused, other]) {
      lanes.add(each)
      if (each === paused) each.pauseUntil = 1000
      lanes.settled(each)
    }
    expect(lanes.continuing(10, 999).map(({ lane: { id } }) => id)).toEqual(['2'])
    expect(lanes.nextPauseEnd(999)).toBe(1000)
    expect(lanes.continuing(10, 1000).map(({ lane: { id } }) => id)).toEqual(['1', '2'])
    expect(lanes.nextPauseEnd(1000)).toBeNull()
  })

  it('ends its pause when it begins behind the event that it waits for', () => {
    const lanes = createLanes(limits)
    const paused = lane('1', { next: '5', pauseUntil: 1000 })
    lanes.add(paused)
    lanes.settled(paused)
    lanes.met(paused, '9', undefined)
    lanes.met(paused, '3', '3')
    lanes.met(paused, '9', '5')
    expect(lanes.continuing(10, 999)).toEqual([])
    lanes.met(paused, '9', '9')
    expect(lanes.continuing(10, 999)).toEqual([{ lane: paused, low: '3' }])
  })

  it('is looked at in its pause when something of it turned up before', () => {
    const lanes = createLanes(limits)
    const paused = lane('1', { next: '5', pauseUntil: 1000 })
    lanes.add(paused)
    lanes.met(paused, '9', undefined)
    lanes.settled(paused)
    expect(lanes.continuing(10, 999)).toEqual([{ lane: paused, low: '5' }])
  })

  it('goes on in the order in which lanes came to rest, as many as asked for', () => {
    const lanes = createLanes(limits)
    const three = ['1', '2', '3'].map((id) => lane(id, { events: 1 }))
    for (const each of three) lanes.add(each)
    for (const index of [2, 0, 1]) lanes.settled(three[index] as Lane)
    expect(lanes.continuing(2, 0).map(({ lane: { id } }) => id)).toEqual(['3', '1'])
  })

  it('keeps its slot from being released', () => {
    const lanes = createLanes(limits)
    const [one, two] = [lane('1'), lane('2')]
    lanes.add(one)
    lanes.add(two)
    lanes.settled(one)
    lanes.remove(one)
    expect(lanes.hasIn(3)).toBe(true)
    lanes.remove(two)
    expect(lanes.hasIn(3)).toBe(false)
  })
})

describe('room', () => {
  const rows = (count: number, size: number): EventRow[] => Array.from({ length: count }, () => ({ size }) as EventRow)

  it('ends with the number of events', () => {
    const lanes = createLanes(limits)
    lanes.add(lane('1', { events: 8, bytes: 0 }))
    expect([lanes.crowded(), lanes.fitting(rows(5, 0)).length]).toEqual([false, 1])
    lanes.add(lane('2', { events: 2, bytes: 0 }))
    expect([lanes.crowded(), lanes.fitting(rows(5, 0)).length]).toEqual([true, 0])
  })

  it('ends with the bytes', () => {
    const lanes = createLanes(limits)
    lanes.add(lane('1', { events: 2, bytes: 60 }))
    expect([lanes.fitting(rows(1, 40)).length, lanes.fitting(rows(1, 41)).length]).toEqual([1, 0])
    lanes.add(lane('2', { events: 1, bytes: 35 }))
    expect(lanes.crowded()).toBe(true)
  })

  it('is always there for one large event, which takes none from the others', () => {
    const lanes = createLanes(limits)
    lanes.add(lane('1', { events: 2, bytes: 80 }))
    expect([lanes.fitting(rows(2, 1_000_000)).length, lanes.fitting(rows(2, 51)).length]).toEqual([1, 1])
    const huge = lane('2', { events: 1, bytes: 1_000_000 })
    lanes.add(huge)
    expect(lanes.crowded()).toBe(false)
    expect([lanes.fitting(rows(1, 20)).length, lanes.fitting(rows(1, 51)).length]).toEqual([1, 0])
    lanes.settled(huge)
    expect([lanes.fitting(rows(1, 20)).length, lanes.fitting(rows(1, 51)).length]).toEqual([1, 1])
  })

  it('of one lane is a fifth of the events of its destination, and the bytes of four runs', () => {
    const lanes = createLanes({
      maxInFlight: 1000,
      maxInFlightBytes: 1e9,
      maxInFlightPerDestination: 300,
      maxRunBytes: 100,
    })
    expect(lanes.fitting(rows(500, 1))).toHaveLength(60)
    expect(lanes.fitting(rows(500, 50))).toHaveLength(8)
    expect(lanes.fitting(rows(500, 5000))).toHaveLength(1)
  })

  it('comes back while a run goes on, with what is settled of it', () => {
    const lanes = createLanes(limits)
    const one = lane('1', { events: 6, bytes: 60 })
    lanes.add(one)
    lanes.progressed(one, 4, 40)
    expect([lanes.events, lanes.roomFor('orders')]).toEqual([2, 4])
    lanes.settled(one)
    expect([lanes.events, lanes.roomFor('orders')]).toEqual([0, 6])
  })

  it('ends at one destination without ending at another', () => {
    const lanes = createLanes(limits)
    const big = lane('1', { events: 6 })
    lanes.add(big)
    expect([lanes.roomFor('orders'), lanes.roomFor('bills'), lanes.mostlyFree('orders')]).toEqual([0, 6, false])
    lanes.settled(big)
    expect([lanes.roomFor('orders'), lanes.mostlyFree('orders')]).toEqual([6, true])
  })

  it('is taken by a paused lane too, so that an outage of unknown outcomes fills no memory', () => {
    const lanes = createLanes(limits)
    for (let id = 0; id < 6; id++) {
      const paused = lane(String(id), { events: 1, bytes: 0 })
      lanes.add(paused)
      paused.pauseUntil = 1000
      lanes.settled(paused)
    }
    expect(lanes.events).toBe(0)
    expect(lanes.roomFor('orders')).toBe(0)
  })
})
