import type { FailureKind } from '../contract/publisher.ts'
import { idAfter } from '../contract/lane.ts'
import type { EventRow } from '../storage/event-row.ts'
import type { SettleEntry } from '../storage/settle.ts'
import { type Backoff, backoffMs } from './backoff.ts'
import { errorText } from './error-text.ts'
import type { Outcome } from './outcome.ts'

export interface FailurePolicy {
  readonly maxAttempts: number
  readonly backoff: Backoff
  /** What becomes of an event after its last attempt: `failed` lets its lane go on, `held` stops it. */
  readonly exhausted: 'failed' | 'held'
}

/** What a try that was not counted remembers about its event, in memory only. */
export interface UnknownTries {
  readonly eventId: string
  readonly tries: number
  /** How much the destination had acknowledged when the last try ended. */
  readonly acknowledgedThen: number
}

export interface Decision {
  readonly entries: readonly SettleEntry[]
  /** First id that the run did not settle. */
  readonly next: string
  /** The event whose last attempt this was. */
  readonly ended?: { readonly row: EventRow; readonly cause: unknown }
  /** Set when the lane waits in memory, because nothing was counted. */
  readonly pauseMs?: number
  readonly unknown?: UnknownTries
}

export interface Judgement {
  readonly policy: FailurePolicy
  readonly random: () => number
  /** What this relay remembers of the run's first event. */
  readonly before: UnknownTries | undefined
  /** How many events the destination has acknowledged to this relay so far. */
  readonly acknowledgedNow: number
  /** Longest pause before an uncounted retry: below the broker's dedupe window, so that it still drops the repeat. */
  readonly longestPauseMs: number
}

/** Decides what to write for a run, `written` events of which were written before it ended, and how its lane goes on. */
export function decideRun(run: readonly EventRow[], outcome: Outcome, judgement: Judgement, written = 0): Decision {
  const entries: SettleEntry[] = acknowledgedEntries(run, written, outcome.acknowledged)
  const stopped = run[outcome.acknowledged]
  const last = run[run.length - 1]
  if (stopped === undefined) return { entries, next: last === undefined ? '0' : idAfter(last.id) }
  if (outcome.failure === undefined) {
    return { entries, next: stopped.id, ...(outcome.pauseMs === undefined ? {} : { pauseMs: outcome.pauseMs }) }
  }

  const { failure } = outcome
  if (failure.kind === 'unavailable') return { entries, next: stopped.id }
  if (failure.kind === 'unknown' || failure.kind === 'transient') {
    const known = judgement.before?.eventId === stopped.eventId ? judgement.before : undefined
    // A first try cannot know whether the destination is in an outage; later ones count once it answered somebody else.
    const counts =
      failure.kind === 'unknown' && known !== undefined && judgement.acknowledgedNow > known.acknowledgedThen
    if (!counts) {
      const tries = (known?.tries ?? 0) + 1
      const pauseMs =
        failure.retryAfterMs ??
        Math.min(backoffMs(tries, judgement.policy.backoff, judgement.random), judgement.longestPauseMs)
      return {
        entries,
        next: stopped.id,
        pauseMs,
        unknown: { eventId: stopped.eventId, tries, acknowledgedThen: judgement.acknowledgedNow },
      }
    }
  }
  return counted(entries, stopped, failure, judgement)
}

function counted(
  entries: SettleEntry[],
  row: EventRow,
  failure: { readonly kind: FailureKind; readonly retryAfterMs?: number; readonly cause: unknown },
  { policy, random, before, acknowledgedNow }: Judgement,
): Decision {
  const attempts = row.attempts + 1
  const ends = failure.kind === 'permanent' || attempts >= policy.maxAttempts
  entries.push({
    ...identity(row),
    failure: {
      outcome: failure.kind,
      error: errorText(failure.cause),
      retryInMs: failure.retryAfterMs ?? backoffMs(attempts, policy.backoff, random),
      ...(ends ? { end: policy.exhausted } : {}),
    },
  })
  return {
    entries,
    next: row.id,
    ...(ends ? { ended: { row, cause: failure.cause } } : {}),
    ...(failure.kind === 'unknown' && before !== undefined
      ? { unknown: { eventId: row.eventId, tries: before.tries, acknowledgedThen: acknowledgedNow } }
      : {}),
  }
}

export function acknowledgedEntries(run: readonly EventRow[], from: number, to: number): SettleEntry[] {
  return run.slice(from, to).map(identity)
}

function identity({ id, eventId, attempts, requeues }: EventRow): {
  id: string
  eventId: string
  attempts: number
  requeues: number
} {
  return { id, eventId, attempts, requeues }
}
