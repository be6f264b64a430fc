import type { Figure } from './figure.ts'
import type { Table } from './table.ts'

/** One benchmark: what `npm run bench -- NAME` runs. */
export interface Benchmark {
  readonly name: string
  /** One line for the list of benchmarks. */
  readonly about: string
  run(context: BenchmarkContext): Promise<BenchmarkResult>
}

export interface BenchmarkContext extends BenchmarkOptions {
  /** Progress, for people: goes to stderr. */
  readonly say: (line: string) => void
}

export interface BenchmarkOptions {
  /** Size of the benchmark; each has its own default. */
  readonly rows: number | undefined
  readonly repetitions: number
  readonly seconds: number
  /** Longest time that the obvious query may take before it is given up, in seconds. */
  readonly capSeconds: number
  /** Names of the parts to run; undefined is all of them. */
  readonly only: readonly string[] | undefined
}

export interface BenchmarkResult {
  readonly tables: readonly Table[]
  readonly figures: readonly Figure[]
  /** Versions and settings that the figures were measured with. */
  readonly environment: Readonly<Record<string, string>>
  /** What broke a promise, such as a lost event: fails the run whatever the figures are. */
  readonly broken: readonly string[]
}

export function wanted(only: readonly string[] | undefined, part: string): boolean {
  return only === undefined || only.some((name) => part.startsWith(name))
}
