import type { SqlConnector } from '../contract/sql-client.ts'
import type { RelaySettings } from '../options.ts'
import type { Names } from '../storage/names.ts'
import { listenStatement } from '../storage/wake.ts'
import { createSession, type Session } from './session.ts'

/** One session for each of the relay's uses, so that none waits behind another. */
export interface Sessions {
  /** Listens for wake-ups and for freed slots, where the client can. */
  readonly find: Session
  readonly settle: Session
  readonly ownership: Session
  /** Large payloads, and the purge. */
  readonly load: Session
}

export function createSessions(
  client: SqlConnector,
  names: Names,
  { statementTimeoutMs: timeoutMs, leaseMs, listen }: Pick<RelaySettings, 'statementTimeoutMs' | 'leaseMs' | 'listen'>,
  on: { readonly wake: () => void; readonly slotsFreed: () => void },
): Sessions {
  return {
    find: createSession(client, {
      timeoutMs,
      async onConnect(connection) {
        if (!listen || connection.onNotification === undefined) return
        connection.onNotification((channel) => {
          if (channel === names.channel) on.wake()
          else if (channel === names.slotsChannel) on.slotsFreed()
        })
        await connection.run(listenStatement(names.channel))
        await connection.run(listenStatement(names.slotsChannel))
      },
    }),
    settle: createSession(client, { timeoutMs }),
    // A renewal that takes longer than half a lease would come too late.
    ownership: createSession(client, { timeoutMs: Math.min(timeoutMs, leaseMs / 2) }),
    load: createSession(client, { timeoutMs }),
  }
}
