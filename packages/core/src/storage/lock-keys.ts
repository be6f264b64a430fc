import type { Statement } from '../contract/sql-client.ts'
import type { NewEvent } from './insert-events.ts'
import type { Names } from './names.ts'

/**
 * Waits until no other transaction is writing to the keys of these events, and keeps it so until this one ends.
 *
 * Parameters: $1 topics, $2 keys, $3 orderings or null. Locks: advisory ones, at most 1,025, in ascending order. They
 * are described where the function is made, in the migration, because plain SQL calls it too. No index; reads the one
 * row of the settings.
 *
 * A statement of its own: READ COMMITTED gives the INSERT behind it a snapshot that is younger than the locks.
 */
export function lockKeysStatement(names: Names, events: readonly NewEvent[]): Statement {
  return {
    text: `select ${names.quotedSchema}.lock_keys($1::text[], $2::text[], $3::text[])`,
    values: [events.map(({ topic }) => topic), events.map(({ key }) => key), events.map(({ ordering }) => ordering)],
  }
}
