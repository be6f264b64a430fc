import type { Failure, RunResult } from '../contract/publisher.ts'

export interface Outcome {
  readonly acknowledged: number
  /** Absent when everything was acknowledged, or when the relay itself stopped before the rest. */
  readonly failure?: Failure
  /** Where the event that failed was going. */
  readonly destination?: string
  /** How long the lane waits before it is read again, when nothing could be published for a reason of our own. */
  readonly pauseMs?: number
  /** What the adapter did that the contract does not allow; it is reported as a fault of the adapter. */
  readonly fault?: string
}

const kinds: ReadonlySet<string> = new Set(['rejected', 'permanent', 'transient', 'unavailable', 'unknown'])

/** Reads a publisher's answer. Whatever the contract does not allow is an unknown outcome of the whole run. */
export function readOutcome(result: unknown, length: number): Outcome {
  if (typeof result !== 'object' || result === null)
    return outside(`resolved with ${result === null ? 'null' : typeof result} instead of a result`)
  const { acknowledged, failure } = result as Partial<RunResult>
  if (typeof acknowledged !== 'number' || !Number.isInteger(acknowledged) || acknowledged < 0) {
    return outside(`acknowledged ${String(acknowledged)} events`)
  }
  if (acknowledged > length) return outside(`acknowledged ${String(acknowledged)} events of a run of ${String(length)}`)
  if (acknowledged === length)
    return failure === undefined ? { acknowledged } : outside('acknowledged the whole run and reported a failure')
  if (failure === undefined)
    return outside(`acknowledged ${String(acknowledged)} of ${String(length)} events without a failure`)
  if (typeof failure !== 'object' || (failure as unknown) === null || !kinds.has(failure.kind))
    return outside('reported a failure of no known kind')
  return { acknowledged, failure: withUsableWait(failure) }
}

/** Longest wait that a broker can ask for: a day. What is no number of milliseconds is no wish. */
const longestWaitMs = 86_400_000

function withUsableWait(failure: Failure): Failure {
  const { kind, destination, retryAfterMs, cause } = failure
  const named = destination === undefined ? { kind, cause } : { kind, cause, destination }
  if (typeof retryAfterMs !== 'number' || !(retryAfterMs >= 0)) return named
  return { ...named, retryAfterMs: Math.min(retryAfterMs, longestWaitMs) }
}

export function outside(what: string, cause: unknown = new Error(`the publisher ${what}`)): Outcome {
  return { acknowledged: 0, failure: { kind: 'unknown', cause }, fault: `the publisher ${what}` }
}
