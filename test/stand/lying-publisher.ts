import type { OutboxEvent, Publisher, RunResult } from '@inorder/core'
import { chance } from './chance.ts'

/** Shares of runs about which a publisher lies, so that whoever counts can show that it notices. */
export interface Lies {
  /** Acknowledges the last event of the run without sending it. */
  readonly lost: number
  /** Sends the run from its end to its start. */
  readonly swapped: number
  /** Sends the run twice. */
  readonly repeated: number
}

/** A publisher that says what did not happen, and does what it does not say. */
export function lyingPublisher(inner: Publisher, seed: number, lies: Lies): Publisher {
  const lie = (kind: keyof Lies, run: readonly OutboxEvent[]): boolean =>
    chance(seed, kind, run[0]?.eventId ?? '') < lies[kind]

  async function publish(run: readonly OutboxEvent[], signal: AbortSignal): Promise<RunResult> {
    if (lie('lost', run)) {
      const sent = run.length === 1 ? { acknowledged: 0 } : await inner.publish(run.slice(0, -1), signal)
      return sent.acknowledged === run.length - 1 ? { acknowledged: run.length } : sent
    }
    if (lie('swapped', run) && run.length > 1) return inner.publish(run.toReversed(), signal)
    if (lie('repeated', run)) await inner.publish(run, signal)
    return inner.publish(run, signal)
  }

  return { ...inner, publish }
}
