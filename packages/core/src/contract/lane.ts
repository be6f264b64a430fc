/**
 * Arithmetic on lanes, slots and ids. All three are 64-bit integers that travel as decimal text, because they do not
 * fit a JavaScript number.
 */

/** How many ranges the lanes of an outbox are divided into. Fixed for ever: a key never changes its slot. */
export const slotCount = 256

const slotBits = 56n

/** The slot of a lane: the top 8 bits of its hash. */
export function slotOf(lane: string): number {
  return Number((BigInt(lane) >> slotBits) + 128n)
}

/** The smallest lane of a slot. */
export function firstLane(slot: number): string {
  return (BigInt(slot - 128) << slotBits).toString()
}

/** The largest lane of a slot. */
export function lastLane(slot: number): string {
  return ((BigInt(slot - 128) << slotBits) + (1n << slotBits) - 1n).toString()
}

/** Orders row ids, which the table keeps above 0, without turning them into BigInts: this runs once per row. */
export function compareIds(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length
  if (a === b) return 0
  return a < b ? -1 : 1
}

export function smallerId(a: string, b: string): string {
  return compareIds(a, b) <= 0 ? a : b
}

const largestId = 2n ** 63n - 1n

/** The next id, or the same where there is none: the column holds no larger one. */
export function idAfter(id: string): string {
  const next = BigInt(id) + 1n
  return (next > largestId ? largestId : next).toString()
}

export function compareLanes(a: string, b: string): number {
  const x = BigInt(a)
  const y = BigInt(b)
  if (x === y) return 0
  return x < y ? -1 : 1
}
