import type { Row, Statement } from '../contract/sql-client.ts'

/** The server that a session is on. */
export interface ServerState {
  readonly readOnly: boolean
  /** It follows another server, so that nobody can write on it. */
  readonly replica: boolean
  /** Database, address and port, for people. */
  readonly place: string
}

/** Whether the session can write, and where it is. No parameters, no locks, no table. */
export const serverStateStatement: Statement = {
  text: `select current_setting('transaction_read_only'), pg_is_in_recovery(), current_database(), host(inet_server_addr()), inet_server_port()`,
  values: [],
}

export function readServerState(rows: readonly Row[]): ServerState {
  const [readOnly, replica, database, host, port] = rows[0] ?? []
  const at = host === null || host === undefined ? '' : ` at ${host as string}:${port as string}`
  return { readOnly: readOnly === 'on', replica: replica === 't', place: `"${database as string}"${at}` }
}
