import type { Row, Statement } from '../contract/sql-client.ts'
import type { Names } from './names.ts'

export interface SchemaState {
  readonly version: number
  readonly hashMatches: boolean
  readonly readOnly: boolean
}

/** The version of the schema, whether the hash function still gives the value it gave, and whether writing is possible. */
export function schemaStateStatement(names: Names): Statement {
  return {
    text: `select version, hash_check = hashtextextended('inorder', 0), current_setting('transaction_read_only') from ${names.table('settings')}`,
    values: [],
  }
}

export function readSchemaState(rows: readonly Row[]): SchemaState | undefined {
  const [row] = rows
  if (row === undefined) return undefined
  return { version: Number(row[0]), hashMatches: row[1] === 't', readOnly: row[2] === 'on' }
}
