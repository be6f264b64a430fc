import type { OutboxEvent } from '@inorder/core'
import { type Match, matches } from './delivery.ts'

/**
 * What can go wrong at the broker.
 *
 * - `reject`: answers that it does not take this event, `rejected` or `permanent`.
 * - `unavailable`: one destination, or with none named the whole broker, takes nothing; connect fails too.
 * - `hang`: does not answer a run with such an event, and takes nothing of it, until the fault ends.
 * - `late`: takes the run and acknowledges it after `ms`.
 * - `lose`: takes the run; the acknowledgement of the event and of all behind it gets lost.
 * - `die`: takes the first `delivered` events of a run; the answer is `unknown`, or publish throws.
 */
export type FaultKind = 'reject' | 'unavailable' | 'hang' | 'late' | 'lose' | 'die'

/** A switch that was turned on. It turns itself off after its last hit. */
export interface Fault {
  /** How often it was felt: once per event with `reject` and `unavailable`, once per run with the others. */
  readonly hits: number
  /** Turns it off. What hangs goes on. Safe to call twice. */
  readonly end: () => void
}

export interface ActiveFault extends Fault {
  readonly kind: FaultKind
  readonly match: Match | undefined
  readonly destination: string | undefined
  readonly ms: number
  readonly outcome: 'rejected' | 'permanent' | 'unknown' | 'throw'
  readonly retryAfterMs: number | undefined
  readonly delivered: number
  /** What happens to a hanging run that its publisher gave up on, when the fault ends. */
  readonly afterGiveUp: 'drop' | 'deliver'
  readonly ended: Promise<void>
  readonly hit: () => void
}

export type FaultDetails = Partial<
  Pick<ActiveFault, 'match' | 'destination' | 'ms' | 'outcome' | 'retryAfterMs' | 'delivered' | 'afterGiveUp'>
>

export interface FaultList {
  /** False means that nothing can go wrong, which is the fast path of publish. */
  readonly some: boolean
  add(kind: FaultKind, times: number, details: FaultDetails): Fault
  forEvent(kind: 'reject' | 'lose', event: OutboxEvent): ActiveFault | undefined
  forRun(kind: 'hang' | 'late' | 'die', run: readonly OutboxEvent[]): ActiveFault | undefined
  unavailable(destination: string | undefined): ActiveFault | undefined
  endAll(): void
}

export function faultList(): FaultList {
  const active = new Set<ActiveFault>()

  function add(kind: FaultKind, times: number, details: FaultDetails): Fault {
    let hits = 0
    let release = (): void => undefined
    const ended = new Promise<void>((resolve) => (release = resolve))
    const fault: ActiveFault = {
      kind,
      match: undefined,
      destination: undefined,
      ms: 0,
      outcome: 'unknown',
      retryAfterMs: undefined,
      delivered: 0,
      afterGiveUp: 'drop',
      ...details,
      ended,
      get hits() {
        return hits
      },
      hit() {
        hits++
        if (hits >= times && kind !== 'hang') fault.end()
      },
      end() {
        active.delete(fault)
        release()
      },
    }
    active.add(fault)
    return fault
  }

  function find(test: (fault: ActiveFault) => boolean): ActiveFault | undefined {
    for (const fault of active) if (test(fault)) return fault
    return undefined
  }

  return {
    get some() {
      return active.size > 0
    },
    add,
    forEvent: (kind, event) => find((fault) => fault.kind === kind && matches(fault.match, event)),
    forRun: (kind, run) => find((fault) => fault.kind === kind && run.some((event) => matches(fault.match, event))),
    unavailable: (destination) =>
      find(({ kind, destination: only }) => kind === 'unavailable' && (only === undefined || only === destination)),
    endAll() {
      for (const fault of [...active]) fault.end()
    },
  }
}
