import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  compareIds,
  compareLanes,
  firstLane,
  idAfter,
  lastLane,
  slotCount,
  slotOf,
  smallerId,
} from '../../src/contract/lane.ts'

const lane = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String)
const id = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }).map(String)

describe('the slots', () => {
  it('cover every lane once, in order and without a gap', () => {
    expect(firstLane(0)).toBe((-(2n ** 63n)).toString())
    expect(lastLane(slotCount - 1)).toBe((2n ** 63n - 1n).toString())
    for (let slot = 1; slot < slotCount; slot++)
      expect(firstLane(slot)).toBe((BigInt(lastLane(slot - 1)) + 1n).toString())
  })

  it('know their own lanes', () => {
    fc.assert(
      fc.property(lane, (each) => {
        const slot = slotOf(each)
        expect(compareLanes(firstLane(slot), each)).toBeLessThanOrEqual(0)
        expect(compareLanes(each, lastLane(slot))).toBeLessThanOrEqual(0)
      }),
    )
    for (let slot = 0; slot < slotCount; slot++)
      expect([slotOf(firstLane(slot)), slotOf(lastLane(slot))]).toEqual([slot, slot])
  })
})

describe('64-bit numbers as text', () => {
  const sign = (number: number | bigint): number => (number > 0 ? 1 : number < 0 ? -1 : 0)

  it('compare as numbers, where doubles would be equal', () => {
    expect(compareIds('9007199254740993', '9007199254740992')).toBeGreaterThan(0)
    expect(compareLanes('-9007199254740993', '-9007199254740992')).toBeLessThan(0)
    fc.assert(
      fc.property(id, id, (a, b) => {
        expect(sign(compareIds(a, b))).toBe(sign(BigInt(a) - BigInt(b)))
      }),
    )
    fc.assert(
      fc.property(lane, lane, (a, b) => {
        expect(sign(compareLanes(a, b))).toBe(sign(BigInt(a) - BigInt(b)))
      }),
    )
  })

  it('have a smaller one and a next one', () => {
    fc.assert(
      fc.property(id, id, (a, b) => {
        expect(smallerId(a, b)).toBe((BigInt(a) < BigInt(b) ? BigInt(a) : BigInt(b)).toString())
      }),
    )
    expect(idAfter('9007199254740992')).toBe('9007199254740993')
    expect(idAfter('99')).toBe('100')
    // The column holds no larger one, and a statement that was asked for it would be refused.
    expect(idAfter('9223372036854775807')).toBe('9223372036854775807')
  })
})
