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
 * Buffers that an amount of work may cost, whatever else is in the table. A descent of an index with these sizes takes
 * up to 3 pages and a step to its neighbour 1, a row read 1 page and its index entry's page 1. A row written is found
 * by its id (3), locked (2), written to a new page (3) and entered into up to 5 indexes (4 each). 60 are for the rest:
 * the other small tables and the first look at each index.
 */
export function pages({ scans = 0, rows = 0, dead = 0, written = 0 }: Work): number {
  return 60 + 4 * scans + 2 * rows + 2 * dead + 30 * written
}
