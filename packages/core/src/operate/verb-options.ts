import type { Problem } from '../contract/errors.ts'
import {
  flagOption,
  functionOption,
  numberOption,
  objectOption,
  type OptionTable,
  optionProblems,
} from '../contract/option-table.ts'
import type { LaterPublished } from '../storage/count-later-published.ts'

/** Options of every verb that changes events. */
export interface VerbOptions {
  /** Whether to say what would be changed, and write nothing at all. Default false. */
  readonly dryRun?: boolean
  /**
   * Events in one transaction. Default 1,000, minimum 1, at most 10,000. Larger ones are a little faster and keep
   * locks for longer: 1,000 take some 20 ms.
   */
  readonly batchSize?: number
  /** Called while events are searched, and after each transaction. What it throws ends the verb. */
  readonly onProgress?: (progress: VerbProgress) => void
  /** Aborting ends the verb behind the transaction that is running; calling it again goes on with the rest. */
  readonly signal?: AbortSignal
}

export interface VerbProgress {
  readonly phase: 'search' | 'change'
  /** Events that were looked at in the search. */
  readonly scanned: number
  readonly matched: number
  readonly changed: number
  readonly skipped: number
}

/** What a verb did, or would do. */
export interface VerbReport {
  /** UUID under which it stands in the audit. */
  readonly action: string
  readonly dryRun: boolean
  /** False when `signal` aborted first. */
  readonly finished: boolean
  /** Events that the filter means. */
  readonly matched: number
  /** Events that were changed; in a dry run, those that would be. */
  readonly changed: number
  /** Events that stay as they are because someone else has them locked, or one before them in their key. Call again. */
  readonly skipped: number
  /** Events that were named by id, or found at first, and are in no state for this verb. */
  readonly unmatched: number
  /**
   * What comes too late: events of these keys that are published already, although they stand behind events that go
   * out now. Absent where a verb puts nothing in line.
   */
  readonly laterPublished?: LaterPublished
}

const verbTable: OptionTable = {
  dryRun: flagOption(),
  batchSize: numberOption({ min: 1, max: 10_000 }),
  onProgress: functionOption(),
  signal: objectOption('aborted', 'addEventListener'),
}

export function verbProblems(options: VerbOptions, more: OptionTable = {}): Problem[] {
  return optionProblems(options, { ...verbTable, ...more })
}

export const defaultBatch = 1000
