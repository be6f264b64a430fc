import { setTimeout as delay } from 'node:timers/promises'
import type { Random } from '../stand/random.ts'

/** Does something again and again until the signal aborts, with a random wait before each time. */
export async function repeatedly(
  wait: { readonly random: Random; readonly minMs: number; readonly maxMs: number },
  until: AbortSignal,
  act: () => Promise<void> | void,
): Promise<void> {
  const { random, minMs, maxMs } = wait
  while (await lasting(minMs + random.below(maxMs - minMs), until)) await act()
}

/** Works that go on beside each other and are waited for at the end. */
export interface Beside {
  start(work: Promise<unknown>): void
  /** Resolves when all have ended; rejects with the first that failed. */
  ended(): Promise<void>
}

export function createBeside(): Beside {
  const works: Promise<unknown>[] = []
  return {
    start(work) {
      // It is heard of in `ended`; until then nobody listens, which would end the process.
      work.catch(() => undefined)
      works.push(work)
    },
    async ended() {
      await Promise.all(works)
    },
  }
}

/** Lets so much time pass, and says whether it has: not when the signal aborted. */
export function lasting(ms: number, until: AbortSignal): Promise<boolean> {
  return delay(ms, true, { signal: until }).catch(() => false)
}
