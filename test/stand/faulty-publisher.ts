import type { FailureKind, OutboxEvent, Publisher, RunResult } from '@inorder/core'
import { chance } from './chance.ts'

/** Header with the event's place in what was written, such as `key-3 17`; it decides which events meet a fault. */
export const placeHeader = 'stand-place'
/** Header with the relay that brought an event, so that a duplicate can be traced to it. */
export const relayHeader = 'stand-relay'
/** Header of an event that ends the process which publishes it. */
export const deadlyHeader = 'stand-deadly'

/** What a publisher answered for one run. */
export interface Answer {
  readonly acknowledged: readonly string[]
  readonly failure: FailureKind | undefined
  /** The event the failure is about; with `unknown` all events it covers. */
  readonly failed: readonly string[]
}

/** Faults that are given out one by one, after the broker has the run. */
export type RareFault = 'lost-ack' | 'kill'

export interface FaultPlan {
  readonly seed: number
  readonly relay: string
  /** Share of tries that are answered `rejected`. */
  readonly rejected: number
  /** Share of tries that are answered `unavailable`, a quarter of them for the whole broker. */
  readonly unavailable: number
  readonly onAnswer: (answer: Answer) => void
  /** Ends this process at once. */
  readonly die: () => void
  /** Whether these acknowledged events meet a rare fault. A relay that is to be killed gets no answer here. */
  readonly rareFault: (eventIds: readonly string[]) => Promise<'lost-ack' | undefined>
}

/** A publisher that also answers what its broker did not say. What it acknowledges, the broker has. */
export function faultyPublisher(inner: Publisher, plan: FaultPlan): Publisher {
  const tries = new Map<string, number>()

  function faultOf(event: OutboxEvent): 'rejected' | 'unavailable' | undefined {
    const place = event.headers[placeHeader] ?? event.eventId
    const tried = (tries.get(event.eventId) ?? 0) + 1
    tries.set(event.eventId, tried)
    if (chance(plan.seed, 'rejected', place, event.attempt) < plan.rejected) return 'rejected'
    // An outage does not raise the attempt, so the tries of this relay take its place.
    if (chance(plan.seed, 'unavailable', place, plan.relay, tried) < plan.unavailable) return 'unavailable'
    return undefined
  }

  function refuse(event: OutboxEvent, kind: 'rejected' | 'unavailable'): RunResult {
    const whole = kind === 'unavailable' && chance(plan.seed, 'whole', event.eventId) < 0.25
    const where = whole ? {} : { destination: inner.destination(event) }
    return { acknowledged: 0, failure: { kind, ...where, cause: new Error(`The stand answers ${kind}`) } }
  }

  async function publish(run: readonly OutboxEvent[], signal: AbortSignal): Promise<RunResult> {
    if (run.some(({ headers }) => headers[deadlyHeader] !== undefined)) plan.die()
    let sent = 0
    let refusal: RunResult | undefined
    for (const event of run) {
      const kind = faultOf(event)
      if (kind !== undefined) refusal = refuse(event, kind)
      if (refusal !== undefined) break
      sent++
    }
    if (sent === 0) return refusal ?? { acknowledged: 0 }
    const marked = run
      .slice(0, sent)
      .map((event) => ({ ...event, headers: { ...event.headers, [relayHeader]: plan.relay } }))
    const result = await inner.publish(marked, signal)
    if (result.acknowledged < sent) return result
    if ((await plan.rareFault(idsOf(marked))) === 'lost-ack') {
      return { acknowledged: 0, failure: { kind: 'unknown', cause: new Error('The stand lost this acknowledgement') } }
    }
    return { ...refusal, acknowledged: sent }
  }

  return {
    ...inner,
    async publish(run, signal) {
      const result = await publish(run, signal)
      const { acknowledged, failure } = result
      const covered = failure?.kind === 'unknown' ? run.length : acknowledged + 1
      plan.onAnswer({
        acknowledged: idsOf(run.slice(0, acknowledged)),
        failure: failure?.kind,
        failed: failure === undefined ? [] : idsOf(run.slice(acknowledged, covered)),
      })
      return result
    },
  }
}

function idsOf(events: readonly OutboxEvent[]): string[] {
  return events.map(({ eventId }) => eventId)
}
