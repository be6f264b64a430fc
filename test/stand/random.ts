/** A seeded source of randomness (mulberry32), so that a campaign can be repeated. */
export interface Random {
  /** In [0, 1). */
  next(): number
  /** A whole number below `limit`. */
  below(limit: number): number
  chance(probability: number): boolean
  pick<T>(choices: readonly T[]): T
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    below: (limit) => Math.floor(next() * limit),
    chance: (probability) => next() < probability,
    pick(choices) {
      const choice = choices[Math.floor(next() * choices.length)]
      if (choice === undefined) throw new Error('nothing to pick from')
      return choice
    },
  }
}
