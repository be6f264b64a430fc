import type { RelaySignal } from '../contract/signals.ts'
import type { Names } from '../storage/names.ts'
import { purgeStatement, readPurge } from '../storage/purge.ts'
import { pause, retryPauseMs } from './pace.ts'
import type { Session } from './session.ts'

/** Deletes published events past their retention in the background, one relay at a time, in batches. */
export interface Purger {
  start(): void
}

export interface PurgerOptions {
  readonly session: Session
  readonly names: Names
  readonly retainMs: number
  readonly emit: (signal: RelaySignal) => void
  readonly stopped: AbortSignal
}

/** Events in one statement: some ten milliseconds, so that nothing waits for it. */
const batch = 1000

/** The wait between two full batches, in ms: no more than a part of the server's time goes into the purge. */
const betweenBatchesMs = 50

/** Longest wait between two looks, in ms; a shorter retention looks more often. */
const longestIntervalMs = 60_000
const shortestIntervalMs = 1000
const looksPerRetention = 10

export function createPurger({ session, names, retainMs, emit, stopped }: PurgerOptions): Purger {
  const purge = purgeStatement(names)
  const intervalMs = Math.max(shortestIntervalMs, Math.min(longestIntervalMs, retainMs / looksPerRetention))

  async function loop(): Promise<void> {
    let failures = 0
    let waitMs = intervalMs
    /** How far a backlog is purged. A look begins at the oldest again: rows that were locked may be free. */
    let from: string | undefined
    while (await pause(waitMs, stopped)) {
      try {
        const { deleted, reached } = readPurge((await session.run(purge(retainMs, batch, from))).rows)
        if (failures > 0) emit({ kind: 'database', use: 'purge', ok: true, cause: undefined })
        failures = 0
        waitMs = deleted < batch ? intervalMs : betweenBatchesMs
        from = deleted < batch ? undefined : reached
        if (deleted > 0) emit({ kind: 'purged', events: deleted })
      } catch (error) {
        emit({ kind: 'database', use: 'purge', ok: false, cause: error })
        waitMs = Math.max(intervalMs, retryPauseMs(failures))
        failures += 1
      }
    }
  }

  return {
    start() {
      // Nothing is ever past no retention, and nothing is left when it is none at all.
      if (retainMs > 0 && retainMs < Infinity) void loop()
    },
  }
}
