import type { Answer } from './faulty-publisher.ts'

/** What the outbox says about an event when everything is over. */
export interface EventState {
  readonly eventId: string
  readonly status: string
  readonly attempts: number
  /** How many of the counted failures it remembers had this outcome. */
  readonly rejected: number
  readonly unknown: number
  /** Microseconds since 1970 by the database's clock; undefined when it was not published. */
  readonly publishedAt: bigint | undefined
  /** Text of its last failure. */
  readonly error?: string | null
}

/** What the relays' publishers answered, counted by event. */
export interface AnswerCounts {
  readonly acknowledged: number
  readonly rejected: number
  readonly unavailable: number
  readonly unknown: number
  add(relay: string, answer: Answer, at?: bigint): void
  /** Answers of one kind about an event; some can be left out. */
  of(kind: 'rejected' | 'unknown', eventId: string, leaveOut?: Doubt): number
  /** Every answer that was no acknowledgement, by event. */
  all(): ReadonlyMap<string, readonly { readonly relay: string; readonly at: bigint; readonly kind: string }[]>
}

/** Whether the answer that a relay got at a moment, in microseconds since 1970, may never have been written. */
export type Doubt = (relay: string, at: bigint) => boolean

export function countAnswers(): AnswerCounts {
  const totals = { acknowledged: 0, rejected: 0, permanent: 0, transient: 0, unavailable: 0, unknown: 0 }
  const byEvent = new Map<string, { relay: string; at: bigint; kind: string }[]>()
  return {
    get acknowledged() {
      return totals.acknowledged
    },
    get rejected() {
      return totals.rejected
    },
    get unavailable() {
      return totals.unavailable
    },
    get unknown() {
      return totals.unknown
    },
    add(relay, { acknowledged, failure, failed }, at = 0n) {
      totals.acknowledged += acknowledged.length
      if (failure === undefined) return
      totals[failure] += failed.length
      for (const eventId of failed) {
        const list = byEvent.get(eventId) ?? []
        byEvent.set(eventId, list)
        list.push({ relay, at, kind: failure })
      }
    },
    of: (wanted, eventId, leaveOut = () => false) =>
      (byEvent.get(eventId) ?? []).filter(({ relay, at, kind }) => kind === wanted && !leaveOut(relay, at)).length,
    all: () => byEvent,
  }
}

/**
 * Every attempt must be an answer, and every `rejected` must be an attempt. Two things leave room, and only for the
 * events they touch: an `unknown` counts or does not, depending on what else its destination acknowledged; and the
 * last answers of a relay that was killed or lost its lease are in doubt.
 */
export function attemptFaults(states: readonly EventState[], answers: AnswerCounts, doubt: Doubt): string[] {
  return states.flatMap(({ eventId, attempts, rejected, unknown }) => {
    const most = { rejected: answers.of('rejected', eventId), unknown: answers.of('unknown', eventId) }
    const least = answers.of('rejected', eventId, doubt)
    const faults: string[] = []
    if (attempts !== rejected + unknown) faults.push(`${attempts} attempts, ${rejected + unknown} failures kept`)
    if (rejected > most.rejected || rejected < least)
      faults.push(`${rejected} rejections counted, ${most.rejected} answered`)
    if (unknown > most.unknown) faults.push(`${unknown} unknown outcomes counted, ${most.unknown} answered`)
    return faults.map((fault) => `${eventId}: ${fault}`)
  })
}
