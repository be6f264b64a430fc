import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { backoffMs } from '../../src/relay/backoff.ts'

const usual = { baseMs: 1000, capMs: 60_000 }

describe('the wait after a counted failure', () => {
  it('doubles from the base to the cap', () => {
    const longest = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((failures) => backoffMs(failures, usual, () => 1))
    expect(longest).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000])
  })

  it('is drawn from the upper half, so that it never comes close to none', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2 ** 31 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (failures, drawn) => {
          const longest = Math.min(60_000, 1000 * 2 ** (failures - 1))
          const wait = backoffMs(failures, usual, () => drawn)
          expect(wait).toBeGreaterThanOrEqual(longest / 2)
          expect(wait).toBeLessThanOrEqual(longest)
        },
      ),
    )
  })

  it('stays a number after any number of failures and under any cap', () => {
    for (const failures of [0, 1, 31, 32, 1e9, Infinity]) {
      for (const capMs of [0, 1, 2 ** 31, Number.MAX_SAFE_INTEGER])
        expect(Number.isFinite(backoffMs(failures, { baseMs: 1e9, capMs }, () => 0.5))).toBe(true)
    }
  })

  it('is none with a base of 0', () => {
    for (const failures of [1, 5, 1e9]) expect(backoffMs(failures, { baseMs: 0, capMs: 60_000 }, () => 1)).toBe(0)
  })
})
