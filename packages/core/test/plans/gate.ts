import type { Plan } from './explain.ts'

/** What a plan must be, on any machine. */
export interface Expectation {
  /** The index for each alias of `events` in the statement. */
  readonly indexes: Readonly<Record<string, string>>
  /** Buffers at most, with the reason for the number in `pages`. */
  readonly buffers: number
}

/** From this cost on the server compiles a statement before it runs it, which takes hundreds of milliseconds. */
const jitCost = 100_000

/** What is wrong with a plan; nothing is the promise. */
export function problemsOf(plan: Plan, { indexes, buffers }: Expectation): string[] {
  const problems = plan.sequential.map((alias) => `${alias} is read without an index`)
  for (const [alias, used] of Object.entries(plan.indexes)) {
    for (const index of used) if (index !== indexes[alias]) problems.push(`${alias} is read through ${index}`)
  }
  for (const [alias, index] of Object.entries(indexes)) {
    if (plan.indexes[alias] === undefined) problems.push(`${alias} is not read through ${index}`)
  }
  if (plan.buffers > buffers) problems.push(`${plan.buffers} buffers, at most ${buffers} are needed`)
  if (plan.cost >= jitCost) problems.push(`the estimate is ${plan.cost}, and ${jitCost} makes the server compile it`)
  return problems
}

export interface Work {
  /** Ordered scans that are started: one descent of an index each. */
  readonly scans?: number
  /** Rows that are read from the table. */
  readonly rows?: number
  /** Row versions that nobody may see yet or any more, and that lie where a scan must pass. */
  readonly dead?: number
  /** Rows that are written. */
  readonly written?: number
}

/**
 * Buffers that an amount of work may cost, whatever else is in the table. To start a scan takes up to 3 pages of an
 * index of this size and 1 for the step to its neighbour; a row is 1 page. A version that is passed by is 1 page and 1
 * entry. A row written is locked (1), stored elsewhere (3) and entered into up to 5 indexes (3 each). 60 are for the
 * other, small tables and the first look at each index. Measured were a third to four fifths of it.
 */
export function pages({ scans = 0, rows = 0, dead = 0, written = 0 }: Work): number {
  return Math.ceil(60 + 4 * scans + rows + 2 * dead + 20 * written)
}
