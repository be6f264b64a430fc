import { randomUUID } from 'node:crypto'
import {
  flagOption,
  functionOption,
  numberOption,
  objectOption,
  type OptionTable,
  optionProblems,
  refuseProblems,
} from '../contract/option-table.ts'
import { countPurgeableStatement, maxPurge, purgeStatement, readPurge } from '../storage/purge.ts'
import { recordStatement } from '../storage/record-audit.ts'
import { type OperatorParts, withSession } from './session.ts'
import { defaultBatch } from './verb-options.ts'

export interface PurgeOptions {
  /** How long published events stay, in ms. Default 7 days, minimum 0. */
  readonly retainPublishedMs?: number
  /** Rows that one call deletes at most. Default and maximum 1,000,000, minimum 1. */
  readonly maxRows?: number
  /** Rows in one transaction. Default 1,000, minimum 1, at most 10,000. */
  readonly batchSize?: number
  /** Whether to count what would be deleted, up to `maxRows`, and write nothing at all. Default false. */
  readonly dryRun?: boolean
  /** Called after each transaction with the rows that are gone so far. What it throws ends the purge. */
  readonly onProgress?: (deleted: number) => void
  readonly signal?: AbortSignal
}

export interface PurgeReport {
  /** UUID under which it stands in the audit. */
  readonly action: string
  readonly dryRun: boolean
  /** False when `maxRows` were deleted or `signal` aborted first: there may be more. */
  readonly finished: boolean
  readonly deleted: number
}

const mostRows = 1_000_000
const weekMs = 7 * 24 * 3600 * 1000
/** How long another purger's transaction is waited for before the next try, in ms. */
const turnMs = 20

const purgeTable: OptionTable = {
  retainPublishedMs: numberOption({ min: 0, integer: false }),
  maxRows: numberOption({ min: 1, max: mostRows }),
  batchSize: numberOption({ min: 1, max: maxPurge }),
  dryRun: flagOption(),
  onProgress: functionOption(),
  signal: objectOption('aborted', 'addEventListener'),
}

/** Deletes published events past their retention, oldest first, in transactions of one batch each. */
export async function purge(parts: OperatorParts, options: PurgeOptions): Promise<PurgeReport> {
  refuseProblems('purge', optionProblems(options, purgeTable))
  const { retainPublishedMs = weekMs, maxRows = mostRows, batchSize = defaultBatch, dryRun = false } = options
  const signal = options.signal ?? new AbortController().signal
  const audit = {
    action: randomUUID(),
    actor: parts.actor,
    verb: 'purge',
    filter: JSON.stringify({ retainPublishedMs }),
  }
  const report = (deleted: number, finished: boolean): PurgeReport => ({
    action: audit.action,
    dryRun,
    finished,
    deleted,
  })
  return withSession(parts, async (session) => {
    if (dryRun) {
      const { rows } = await session.run(countPurgeableStatement(parts.names)(retainPublishedMs, maxRows))
      const { deleted } = readPurge(rows)
      return report(deleted, deleted < maxRows)
    }
    const statement = purgeStatement(parts.names)
    let from: string | undefined
    let total = 0
    while (total < maxRows && !signal.aborted) {
      const limit = Math.min(batchSize, maxRows - total)
      const { mine, deleted, reached } = await session.transaction(async (tx) => {
        const purged = readPurge((await tx.run(statement(retainPublishedMs, limit, from))).rows)
        if (purged.deleted > 0) await tx.run(recordStatement(parts.names, audit, purged.deleted))
        return purged
      })
      if (!mine) {
        await parts.pause(turnMs, signal)
        continue
      }
      total += deleted
      from = reached ?? from
      if (deleted > 0) options.onProgress?.(total)
      if (deleted < limit) return report(total, true)
    }
    return report(total, false)
  })
}
