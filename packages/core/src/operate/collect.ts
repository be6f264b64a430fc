import type { SqlSession } from '../contract/sql-client.ts'
import {
  collectGivenStatement,
  collectStatement,
  type CollectCursor,
  type CollectPath,
  collectedRows,
  readCollected,
} from '../storage/collect-events.ts'
import type { Names } from '../storage/names.ts'
import type { ReadFilter } from './filter.ts'

export interface Search {
  readonly names: Names
  readonly filter: ReadFilter
  readonly signal: AbortSignal
  readonly onScanned: (scanned: number, matched: number) => void
}

/**
 * The ids of all events that a filter means, ascending and each once. Eight bytes of memory for each: they are known
 * before the first is changed, because what goes back in line must go in id order, whatever index it was found by.
 */
export async function collectIds(session: SqlSession, search: Search): Promise<BigInt64Array> {
  const { names, filter, signal, onScanned } = search
  const parts: BigInt64Array[] = []
  let scanned = 0
  let matched = 0
  const add = (rows: number, ids: readonly string[]): void => {
    scanned += rows
    matched += ids.length
    parts.push(BigInt64Array.from(ids, BigInt))
    onScanned(scanned, matched)
  }

  if (filter.given !== undefined) {
    const { column, values } = filter.given
    const statement = collectGivenStatement(names, column)(filter.criteria, values)
    const found = readCollected((await session.run(statement)).rows)
    add(found.scanned, found.ids)
    return ascending(parts)
  }
  for (const path of pathsOf(filter)) {
    const statement = collectStatement(names, path)
    let cursor: CollectCursor = [null, null]
    while (!signal.aborted) {
      const found = readCollected((await session.run(statement(filter.criteria, cursor))).rows)
      add(found.scanned, found.ids)
      if (found.scanned < collectedRows || path === 'undated') break
      cursor = found.cursor
    }
  }
  return ascending(parts)
}

/** The indexes through which every event that a filter can mean is found. */
function pathsOf({ criteria }: ReadFilter): CollectPath[] {
  const { statuses, failedAfter, failedBefore } = criteria
  const wants = (status: string): boolean => statuses.includes(status)
  const paths: CollectPath[] = []
  const dated = failedAfter !== null || failedBefore !== null
  if (wants('failed') || wants('held')) paths.push(...(dated ? [] : (['undated'] as const)), 'failed')
  if (wants('pending') && criteria.waits === null) paths.push('in-line')
  if (wants('scheduled') || criteria.waits !== null) paths.push('waiting')
  if (wants('published')) paths.push('published')
  return paths
}

function ascending(parts: readonly BigInt64Array[]): BigInt64Array {
  const all = new BigInt64Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  all.sort()
  // An event can change its state, and so its index, while the indexes are walked one after another.
  let kept = 0
  for (const id of all) if (kept === 0 || id !== all[kept - 1]) all[kept++] = id
  return all.subarray(0, kept)
}
