import type { SqlConnector } from '../contract/sql-client.ts'
import type { Names } from '../storage/names.ts'
import { notifyStatement } from '../storage/wake.ts'
import { pause } from './pace.ts'
import { createSession } from './session.ts'

/** Wakes the relays of other processes. */
export interface Waker {
  wake(): void
  close(): Promise<void>
}

/** At most one NOTIFY in so many milliseconds: NOTIFY takes a lock that every notifying commit queues for. */
const notifyIntervalMs = 5

/** A wake-up is a hint: when it cannot be sent, the next find is a little later. */
const timeoutMs = 2000

/**
 * Sends one NOTIFY for all wake-ups of the last milliseconds, on a connection of its own and never inside a business
 * transaction: inside, the commits of 8 writers queued behind each other and 281 a second were left of 1,090.
 */
export function createWaker(client: SqlConnector, names: Names): Waker {
  const session = createSession(client, { timeoutMs })
  // The only connection of a pool is for the transactions: they would wait for this session, which is never given back.
  const spare = (client.maxSessions ?? Infinity) > 1
  const closed = new AbortController()
  let wanted = false
  let active: Promise<void> | undefined

  async function send(): Promise<void> {
    while (wanted && !closed.signal.aborted) {
      wanted = false
      await session.run(notifyStatement(names.channel)).catch(() => session.drop())
      await pause(notifyIntervalMs, closed.signal)
    }
    active = undefined
  }

  return {
    wake() {
      if (!spare) return
      wanted = true
      active ??= send()
    },
    async close() {
      closed.abort()
      await active
      await session.close()
    },
  }
}
