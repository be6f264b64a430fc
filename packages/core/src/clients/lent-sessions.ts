import { OutboxError } from '../contract/errors.ts'
import type { SqlConnector } from '../contract/sql-client.ts'

/** The sessions of another client, for a library that has none to give; `remedy` is what to write where there is none. */
export function lentSessions(connector: SqlConnector | undefined, library: string, remedy: string): SqlConnector {
  if (connector !== undefined) {
    const { maxSessions } = connector
    return { ...(maxSessions === undefined ? {} : { maxSessions }), connect: () => connector.connect() }
  }
  return {
    connect: () =>
      Promise.reject(
        new OutboxError(
          'OPTIONS_INVALID',
          `${library} cannot lend a session of its own, which migrate, wake-ups and relays need. Write ${remedy}. Enqueueing works without it.`,
        ),
      ),
  }
}
