import { expect, test } from 'vitest'
import { createFaultLog } from './faults.ts'

test('the log finds since when a process may have been disturbed', () => {
  let now = 0n
  const faults = createFaultLog(() => now)
  const at = (moment: bigint, act: () => void): void => {
    now = moment
    act()
  }
  at(10n, () => faults.strike('relay killed', 'relay-1'))
  let over = (): void => undefined
  at(20n, () => (over = faults.begin('postgres killed')))
  at(30n, () => over())
  at(40n, () => faults.begin('relay paused', 'relay-2'))

  expect(faults.earliest('relay-2', 25n)).toBe(20n)
  // What was over before is no excuse, and neither is what befell another.
  expect(faults.earliest('relay-1', 31n)).toBeUndefined()
  expect(faults.earliest('relay-2', 1000n)).toBe(40n)
  expect(faults.counts()).toEqual({ 'relay killed': 1, 'postgres killed': 1, 'relay paused': 1 })
})
