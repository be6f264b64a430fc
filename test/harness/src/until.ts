import { setTimeout as delay } from 'node:timers/promises'

/** Retries until `attempt` resolves; rejects with its last error when the time is up. For readiness, never for ordering. */
export async function until<T>(
  attempt: () => T | Promise<T>,
  options: { timeoutMs: number; everyMs?: number; giveUp?: () => Error | undefined },
): Promise<T> {
  const deadline = performance.now() + options.timeoutMs
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      const reason = options.giveUp?.()
      if (reason !== undefined) throw reason
      if (performance.now() > deadline) throw error
    }
    await delay(options.everyMs ?? 15)
  }
}
