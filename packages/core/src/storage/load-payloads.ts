import type { Row, Statement } from '../contract/sql-client.ts'
import { type Names, statementName } from './names.ts'

/**
 * Reads payloads that were too large to come with their rows. $1 ids. Index: primary key. Locks: none.
 *
 * The ids go through a subquery, so that the planner does not count them: by their number it found reading the whole of a
 * small table cheaper.
 */
export function loadPayloadsStatement(names: Names): (ids: readonly string[]) => Statement {
  const text = `select id, payload from ${names.table('events')} where id = any(array(select unnest($1::bigint[])))`
  const name = statementName('load', text)
  return (ids) => ({ name, text, values: [ids] })
}

export function readPayloads(rows: readonly Row[]): Map<string, Uint8Array> {
  const payloads = new Map<string, Uint8Array>()
  for (const [id, payload] of rows) if (payload instanceof Uint8Array) payloads.set(id as string, payload)
  return payloads
}
