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
}

/** What the relays' publishers answered, counted by event. */
export interface AnswerCounts {
  readonly acknowledged: number
  readonly rejected: number
  readonly unavailable: number
  readonly unknown: number
  add(relay: string, answer: Answer): void
  /** Answers of one kind about an event; those of some relays can be left out. */
  of(kind: 'rejected' | 'unknown', eventId: string, without?: ReadonlySet<string>): number
}

export function countAnswers(): AnswerCounts {
  const totals = { acknowledged: 0, rejected: 0, permanent: 0, unavailable: 0, unknown: 0 }
  const byEvent = new Map<string, { relay: string; kind: string }[]>()
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
    add(relay, { acknowledged, failure, failed }) {
      totals.acknowledged += acknowledged.length
      if (failure === undefined) return
      totals[failure] += failed.length
      for (const eventId of failed) {
        const list = byEvent.get(eventId) ?? []
        byEvent.set(eventId, list)
        list.push({ relay, kind: failure })
      }
    },
    of: (wanted, eventId, without) =>
      (byEvent.get(eventId) ?? []).filter(({ relay, kind }) => kind === wanted && without?.has(relay) !== true).length,
  }
}

/**
 * Every attempt must be an answer, and every `rejected` must be an attempt. Two things leave room, and only for the
 * events they touch: an `unknown` counts or does not, depending on what else its destination acknowledged; and the
 * last answers that a killed relay got may never have been written.
 */
export function attemptFaults(
  states: readonly EventState[],
  answers: AnswerCounts,
  killed: ReadonlySet<string>,
): string[] {
  return states.flatMap(({ eventId, attempts, rejected, unknown }) => {
    const most = { rejected: answers.of('rejected', eventId), unknown: answers.of('unknown', eventId) }
    const least = answers.of('rejected', eventId, killed)
    const faults: string[] = []
    if (attempts !== rejected + unknown) faults.push(`${attempts} attempts, ${rejected + unknown} failures kept`)
    if (rejected > most.rejected || rejected < least)
      faults.push(`${rejected} rejections counted, ${most.rejected} answered`)
    if (unknown > most.unknown) faults.push(`${unknown} unknown outcomes counted, ${most.unknown} answered`)
    return faults.map((fault) => `${eventId}: ${fault}`)
  })
}
