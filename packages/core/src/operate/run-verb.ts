import { randomUUID } from 'node:crypto'
import type { SqlSession, Statement } from '../contract/sql-client.ts'
import {
  countLaterPublishedStatement,
  type LaterPublished,
  laterRows,
  readLaterPublished,
} from '../storage/count-later-published.ts'
import { readTaken, type Taken, type TakeParameters } from '../storage/take-events.ts'
import { collectIds } from './collect.ts'
import type { ReadFilter } from './filter.ts'
import { type OperatorParts, withSession } from './session.ts'
import { stampLanes } from './stamp.ts'
import { defaultBatch, type VerbOptions, type VerbReport } from './verb-options.ts'

/** A verb that changes events. */
export interface Verb {
  readonly name: string
  readonly filter: ReadFilter
  /** Whether what it changes may be published at once. */
  readonly effect: 'puts in line' | 'takes away'
  readonly statement: (parameters: TakeParameters) => Statement
}

/** How long another operator's statement is waited for before the next try, in ms. */
const turnMs = 10

/**
 * Runs a verb: collects the ids that the filter means, then changes them batch by batch in id order, each batch one
 * statement and one transaction. What was locked gets one more look at the end.
 */
export async function runVerb(parts: OperatorParts, verb: Verb, options: VerbOptions): Promise<VerbReport> {
  const { names } = parts
  const { dryRun = false, batchSize = defaultBatch, onProgress } = options
  const signal = options.signal ?? new AbortController().signal
  const action = randomUUID()
  let scanned = 0
  let changed = 0

  async function change(session: SqlSession, ids: BigInt64Array): Promise<string[] | undefined> {
    const skipped: string[] = []
    const shut = new Set<string>()
    for (let from = 0; from < ids.length; from += batchSize) {
      const batch = Array.from(ids.subarray(from, from + batchSize), String)
      const taken = await takeTurn(session, batch, [...shut])
      if (taken === undefined) return undefined
      changed += taken.changed
      skipped.push(...taken.skipped)
      for (const lane of taken.skippedLanes) shut.add(lane)
      await stampLanes(session, parts, taken.opened)
      if (taken.changed > 0) parts.wake()
      onProgress?.({ phase: 'change', scanned, matched: ids.length, changed, skipped: skipped.length })
    }
    return skipped
  }

  /** Runs the verb's statement when no other operator's is running; undefined when the signal aborts first. */
  async function takeTurn(
    session: SqlSession,
    ids: readonly string[],
    shut: readonly string[],
  ): Promise<Taken | undefined> {
    const { criteria, text } = verb.filter
    const audit = { action, actor: parts.actor, verb: verb.name, filter: text }
    const statement = verb.statement({ criteria, ids, shut, audit })
    while (!signal.aborted) {
      const taken = readTaken((await session.run(statement)).rows)
      if (taken.mine) return taken
      await parts.pause(turnMs, signal)
    }
    return undefined
  }

  return withSession(parts, async (session) => {
    const ids = await collectIds(session, {
      names,
      filter: verb.filter,
      signal,
      onScanned(rows, matched) {
        scanned = rows
        onProgress?.({ phase: 'search', scanned, matched, changed: 0, skipped: 0 })
      },
    })
    const laterPublished =
      verb.effect === 'puts in line' && !signal.aborted ? await countLater(session, parts, ids) : undefined
    const report = (done: Pick<VerbReport, 'finished' | 'changed' | 'skipped' | 'unmatched'>): VerbReport => ({
      action,
      dryRun,
      matched: ids.length,
      ...done,
      ...(laterPublished === undefined ? {} : { laterPublished }),
    })
    const named = verb.filter.given === undefined ? ids.length : new Set(verb.filter.given.values).size
    if (dryRun || signal.aborted) {
      const would = dryRun ? ids.length : 0
      return report({ finished: !signal.aborted, changed: would, skipped: 0, unmatched: named - ids.length })
    }
    let skipped = await change(session, ids)
    // A row that somebody changed just then looks like a locked one; and a short lock is over by now.
    if (skipped !== undefined && skipped.length > 0)
      skipped = await change(session, BigInt64Array.from(skipped, BigInt).sort())
    const finished = skipped !== undefined
    const left = skipped?.length ?? 0
    return report({
      finished,
      changed,
      skipped: left,
      unmatched: finished ? named - changed - left : named - ids.length,
    })
  })
}

async function countLater(
  session: SqlSession,
  { names }: OperatorParts,
  ids: BigInt64Array,
): Promise<LaterPublished | undefined> {
  const [first] = ids
  if (first === undefined) return { events: 0, keys: 0, atLeast: false, examples: [] }
  const statement = countLaterPublishedStatement(names)(String(first), Array.from(ids.subarray(0, laterRows), String))
  return readLaterPublished((await session.run(statement)).rows)
}
