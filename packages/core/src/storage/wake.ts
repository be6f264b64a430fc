import type { Statement } from '../contract/sql-client.ts'
import { type Names, quoteIdentifier } from './names.ts'

/** Wakes the relays of other processes. Runs on a session of its own, never inside a business transaction. */
export function notifyStatement(names: Names): Statement {
  return { text: 'select pg_notify($1, $2)', values: [names.channel, ''] }
}

export function listenStatement(names: Names): Statement {
  return { text: `listen ${quoteIdentifier(names.channel)}`, values: [] }
}
