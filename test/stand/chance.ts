import { createHash } from 'node:crypto'

/**
 * A number from 0 up to 1 that depends on nothing but its arguments. A sequence of random numbers would give other
 * events their faults whenever processes run in another order; this gives the same event the same fault every time.
 */
export function chance(seed: number, ...what: readonly (string | number)[]): number {
  return (
    createHash('sha256')
      .update(JSON.stringify([seed, ...what]))
      .digest()
      .readUInt32BE() /
    2 ** 32
  )
}

/** A whole number from `min` to `max`, both included. */
export function pick(min: number, max: number, at: number): number {
  return min + Math.floor(at * (max - min + 1))
}
