import type { Statement } from '../contract/sql-client.ts'
import { quoteIdentifier } from './names.ts'

/** Wakes the relays of other processes. Never inside a business transaction. */
export function notifyStatement(channel: string): Statement {
  return { text: 'select pg_notify($1, $2)', values: [channel, ''] }
}

export function listenStatement(channel: string): Statement {
  return { text: `listen ${quoteIdentifier(channel)}`, values: [] }
}
