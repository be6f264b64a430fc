import type { Statement } from '../contract/sql-client.ts'
import type { Names } from './names.ts'

/**
 * Tells the SQL function `enqueue` whether writers of a key wait for each other. $1 is the answer. Locks: the one row
 * of the settings, and only when the answer changes, so that a start in peace waits for nobody.
 */
export function storeSerializeWritesStatement(names: Names, serializeWrites: boolean): Statement {
  return {
    text: `update ${names.table('settings')} set serialize_writes = $1::boolean where serialize_writes is distinct from $1::boolean`,
    values: [serializeWrites],
  }
}

/** The same as text, for people who own their schema. */
export function storeSerializeWritesSql(names: Names, serializeWrites: boolean): string {
  return storeSerializeWritesStatement(names, serializeWrites).text.replaceAll('$1', String(serializeWrites))
}
