import type { RelaySignal } from '../contract/signals.ts'
import { loadPayloadsStatement, readPayloads } from '../storage/load-payloads.ts'
import type { Names } from '../storage/names.ts'
import type { Session } from './session.ts'

/** Reads payloads that did not come with their rows; undefined when the database cannot be asked, which is said once. */
export type LoadPayloads = (ids: readonly string[]) => Promise<ReadonlyMap<string, Uint8Array> | undefined>

export function createPayloadLoader(session: Session, names: Names, emit: (signal: RelaySignal) => void): LoadPayloads {
  const statement = loadPayloadsStatement(names)
  let failed = false
  return async (ids) => {
    try {
      const payloads = readPayloads((await session.run(statement(ids))).rows)
      if (failed) emit({ kind: 'database', use: 'load', ok: true, cause: undefined })
      failed = false
      return payloads
    } catch (cause) {
      emit({ kind: 'database', use: 'load', ok: false, cause })
      failed = true
      return undefined
    }
  }
}
