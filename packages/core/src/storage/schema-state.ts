import type { Row, Statement } from '../contract/sql-client.ts'
import type { Names } from './names.ts'

export interface SchemaState {
  readonly version: number
  readonly hashMatches: boolean
  /** Steps that this code knows and this schema does not, in order. */
  readonly missing: readonly string[]
}

/**
 * The version of the schema, whether the hash function still gives the value it gave, and which steps have not run.
 * Steps of a later release are of no interest. Parameters: $1 names of the steps.
 */
export function schemaStateStatement(names: Names, steps: readonly string[]): Statement {
  return {
    text: `select version, hash_check = hashtextextended('inorder', 0),
  (select string_agg(step, ',' order by number) from unnest($1::text[]) with ordinality s(step, number)
   where not exists (select 1 from ${names.table('migrations')} m where m.name = s.step))
from ${names.table('settings')}`,
    values: [steps],
  }
}

export function readSchemaState(rows: readonly Row[]): SchemaState | undefined {
  const [row] = rows
  if (row === undefined) return undefined
  return {
    version: Number(row[0]),
    hashMatches: row[1] === 't',
    missing: typeof row[2] === 'string' ? row[2].split(',') : [],
  }
}
