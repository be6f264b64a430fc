import type { OutboxEvent, Publisher, Relay, RelayOptions, RelaySignal, RunResult } from '@inorder/core'
import type { Scene } from './scene.ts'

/** A relay, and what it said. */
export interface Observed {
  readonly relay: Relay
  readonly signals: readonly RelaySignal[]
  /** Resolves as soon as something is so; asked again with every signal, and rejects after 20 s. */
  readonly until: (holds: () => boolean) => Promise<void>
  /** How many finds have returned. */
  readonly finds: () => number
}

export function observe(scene: Pick<Scene, 'relay'>, options: Partial<RelayOptions> = {}): Observed {
  const signals: RelaySignal[] = []
  const waiting = new Set<() => void>()
  let finds = 0
  const relay = scene.relay({
    ...options,
    onSignal(signal) {
      signals.push(signal)
      if (signal.kind === 'found') finds += 1
      for (const ask of waiting) ask()
    },
  })
  return {
    relay,
    signals,
    finds: () => finds,
    async until(holds) {
      const limit = AbortSignal.timeout(20_000)
      await new Promise<void>((resolve, reject) => {
        const ask = (): void => {
          if (!holds()) return
          waiting.delete(ask)
          resolve()
        }
        waiting.add(ask)
        limit.addEventListener('abort', () => {
          reject(limit.reason as Error)
        })
        ask()
      })
    },
  }
}

/** A publisher that something else is asked before. It may answer in its place, by returning a result. */
export function asking(
  publisher: Publisher,
  ask: (run: readonly OutboxEvent[], signal: AbortSignal) => Promise<RunResult | undefined> | RunResult | undefined,
): Publisher {
  return {
    ...publisher,
    publish: async (run, signal) => (await ask(run, signal)) ?? publisher.publish(run, signal),
  }
}
