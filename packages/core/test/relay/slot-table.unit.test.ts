import { describe, expect, it } from 'vitest'
import { createSlotTable } from '../../src/relay/slot-table.ts'
import type { OwnedSlot } from '../../src/storage/slots.ts'

const ownedUnder = (epoch: number, ...slots: number[]): OwnedSlot[] =>
  slots.map((slot) => ({ slot, epoch: String(epoch), crashes: 0, suspicions: {} }))
const owned = (...slots: number[]): OwnedSlot[] => ownedUnder(1, ...slots)

describe('a slot', () => {
  it('that was gained may start lanes, under its epoch, and is fresh once', () => {
    const table = createSlotTable({ leaseMs: 1000 })
    table.gain(owned(9, 4), 0)
    expect(table.usable()).toEqual([4, 9])
    expect([table.epoch(4), table.epoch(5)]).toEqual(['1', undefined])
    expect(table.takeFresh()).toEqual([9, 4])
    expect(table.takeFresh()).toEqual([])
  })

  it('that is being given up starts nothing, but is still owned', () => {
    const table = createSlotTable({ leaseMs: 1000 })
    table.gain(owned(1, 2, 3), 0)
    table.drain(2, 0, () => false)
    expect(table.usable()).toEqual([1])
    expect(table.drainingSlots()).toEqual([3, 2])
    expect([table.size, table.draining, table.epoch(3), table.isDraining(3)]).toEqual([3, 2, undefined, true])
    table.drain(1, 0, () => false)
    expect(table.usable()).toEqual([])
    table.lose(3)
    expect([table.size, table.draining, table.isDraining(3)]).toEqual([2, 2, false])
  })

  it('that is lost is lost at once', () => {
    const table = createSlotTable({ leaseMs: 1000 })
    table.gain(owned(1, 2), 0)
    expect(table.usable()).toEqual([1, 2])
    table.lose(2)
    expect(table.usable()).toEqual([1])
    table.clear()
    expect([table.size, table.usable(), table.takeFresh()]).toEqual([0, [], []])
  })
})

describe('slots to give up', () => {
  it('are those of which nothing is in flight, before any other', () => {
    const table = createSlotTable({ leaseMs: 1000 })
    table.gain(owned(1, 2, 3, 4), 0)
    table.drain(2, 0, (slot) => slot === 1 || slot === 3)
    expect(table.usable()).toEqual([2, 4])
  })

  it('are kept, swept again and given up last when that takes too long', () => {
    const table = createSlotTable({ leaseMs: 1000 })
    table.gain(owned(1, 2, 3), 0)
    table.takeFresh()
    table.drain(1, 0, () => false)
    table.keepStuck(999)
    expect(table.usable()).toEqual([1, 2])
    table.keepStuck(1000)
    expect([table.usable(), table.takeFresh()]).toEqual([[1, 2, 3], [3]])
    table.drain(1, 2000, () => false)
    expect(table.drainingSlots()).toEqual([2])
  })
})

describe('what the database says is owned', () => {
  it('is what the table says afterwards', () => {
    const table = createSlotTable({ leaseMs: 1000 })
    table.gain(owned(1, 2, 3), 0)
    table.takeFresh()
    expect(table.reconcile(owned(2, 3, 4), 0)).toEqual({ gained: 1, lost: 1 })
    expect(table.usable()).toEqual([2, 3, 4])
    expect(table.takeFresh()).toEqual([4])
    expect(table.reconcile(owned(2, 3, 4), 0)).toEqual({ gained: 0, lost: 0 })
  })

  it('under another epoch was lost in between and gained again: it is fresh', () => {
    const table = createSlotTable({ leaseMs: 1000 })
    table.gain(owned(1), 0)
    table.takeFresh()
    expect(table.reconcile(ownedUnder(3, 1), 0)).toEqual({ gained: 1, lost: 1 })
    expect(table.epoch(1)).toBe('3')
    expect(table.takeFresh()).toEqual([1])
  })

  it('does not call back a slot that is being given up', () => {
    const table = createSlotTable({ leaseMs: 1000 })
    table.gain(owned(1, 2), 0)
    table.drain(1, 0, () => false)
    table.reconcile(owned(1, 2), 0)
    expect(table.usable()).toEqual([1])
  })
})
