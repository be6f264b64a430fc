import type { Publisher } from '../contract/publisher.ts'
import type { RelaySignal } from '../contract/signals.ts'
import { releaseParked } from './admission.ts'
import { type Breakers, wholePublisher } from './breaker.ts'
import type { Lane, Lanes } from './lanes.ts'
import type { Outcome } from './outcome.ts'
import type { Parking } from './parking.ts'
import { toSignalEvent } from './relay-event.ts'
import type { SettleEntry } from '../storage/settle.ts'
import { acknowledgedEntries, decideRun, type Decision, type FailurePolicy } from './settle.ts'
import type { Settler } from './settler.ts'
import type { SlotTable } from './slot-table.ts'
import type { Sweeper } from './sweeper.ts'

export interface CompletionContext {
  readonly publisher: Publisher
  readonly lanes: Lanes
  readonly slots: SlotTable
  readonly sweeper: Sweeper
  readonly breakers: Breakers
  readonly parking: Parking
  readonly settler: Settler
  readonly policy: FailurePolicy
  readonly random: () => number
  readonly acknowledgedBy: (destination: string) => number
  readonly emit: (signal: RelaySignal) => void
  readonly onFailed: (signal: Extract<RelaySignal, { kind: 'failed' }>) => void
  /** A lane came to rest or left: the finder has something to do, a slot may be drained. */
  readonly onRest: (lane: Lane) => void
}

/** Takes what a lane's run brings: breakers first, then the outcomes into the database, then the lane to rest. */
export interface Completion {
  /** The first events of a run are acknowledged and it goes on. */
  progress(lane: Lane, acknowledged: number): void
  end(lane: Lane, outcome: Outcome): void
  /** A destination acknowledged something. */
  answered(destination: string): void
  /** Takes a lane out of flight whose run cannot be completed; its slot is swept. */
  abandon(lane: Lane): void
}

export function createCompletion(context: CompletionContext): Completion {
  const { lanes, slots, sweeper, settler, policy, random } = context

  /** A lane stays in flight until the last of its settlements is committed. */
  function restWhenSettled(lane: Lane): void {
    if (!lane.ended || lane.unsettled > 0) return
    if (lane.owned) lanes.settled(lane)
    else {
      // The slot moved under the run. If it is ours again, the sweep of the regained slot passed this lane over.
      if (slots.epoch(lane.slot) === lane.epoch) slots.lose(lane.slot)
      lanes.remove(lane)
      sweeper.mark(lane.slot)
    }
    context.onRest(lane)
  }

  function settle(
    lane: Lane,
    entries: readonly SettleEntry[],
    onCounted: (counted: ReadonlySet<string>) => void,
  ): void {
    lane.unsettled += 1
    settler.push({
      slot: lane.slot,
      epoch: lane.epoch,
      entries,
      done({ owned, counted }) {
        onCounted(counted)
        lane.unsettled -= 1
        lane.owned &&= owned
        restWhenSettled(lane)
      },
    })
  }

  function reportEnd(decision: Decision, counted: ReadonlySet<string>): void {
    const { ended } = decision
    if (ended === undefined || !counted.has(ended.row.id)) return
    context.onFailed({
      kind: 'failed',
      event: { ...toSignalEvent(ended.row), attempts: ended.row.attempts + 1 },
      held: policy.exhausted === 'held',
      cause: ended.cause,
    })
  }

  return {
    answered(destination) {
      answered(destination, context)
    },
    abandon(lane) {
      lanes.remove(lane)
      sweeper.mark(lane.slot)
      context.onRest(lane)
    },
    progress(lane, acknowledged) {
      const rows = lane.rows.slice(lane.written, acknowledged)
      const bytes = rows.reduce((sum, { size }) => sum + (size ?? 0), 0)
      settle(lane, acknowledgedEntries(lane.rows, lane.written, acknowledged), () => {
        lanes.progressed(lane, rows.length, bytes)
      })
      lane.written = acknowledged
    },
    end(lane, outcome) {
      judgeDestination(lane, outcome, context)
      const judgement = {
        policy,
        random,
        before: lane.unknown,
        acknowledgedNow: context.acknowledgedBy(lane.destination),
        longestPauseMs: longestPauseMs(context.publisher, policy),
      }
      const decision = decideRun(lane.rows, outcome, judgement, lane.written)
      lane.next = decision.next
      lane.unknown = decision.unknown
      lane.ended = true
      if (decision.pauseMs !== undefined) lane.pauseUntil = performance.now() + decision.pauseMs
      if (decision.entries.length === 0) restWhenSettled(lane)
      else
        settle(lane, decision.entries, (counted) => {
          reportEnd(decision, counted)
        })
    },
  }
}

/**
 * What the end of a run says about the destination where it ended. A failure that names another destination than the
 * event's own says something about the event's, since that is the one whose lanes have to wait.
 */
function judgeDestination(
  lane: Lane,
  { failure, destination = lane.destination }: Outcome,
  context: CompletionContext,
): void {
  const { breakers, emit } = context
  const now = performance.now()
  if (failure?.kind === 'unavailable') {
    const down = failure.destination === undefined ? wholePublisher : destination
    if (breakers.unavailable(down, now, failure.cause, failure.retryAfterMs)) {
      emit({ kind: 'breaker', destination: down, open: true, cause: failure.cause })
    }
  } else if (failure?.kind === 'rejected' || failure?.kind === 'transient') answered(destination, context)
  breakers.probeEnded(lane.id, now)
}

/** A destination answered: what waited for it may go. */
function answered(destination: string, { breakers, parking, sweeper, emit }: CompletionContext): void {
  for (const closed of breakers.answered(destination)) {
    emit({ kind: 'breaker', destination: closed, open: false, cause: undefined })
    for (const slot of releaseParked(parking, closed)) sweeper.mark(slot)
  }
}

/** An uncounted retry comes before the broker forgets the event id, with room to spare. */
function longestPauseMs({ capabilities }: Publisher, { backoff }: FailurePolicy): number {
  const { by, windowMs } = capabilities.dedupe
  return by === 'broker' && windowMs > 0 ? Math.min(backoff.capMs, windowMs / 4) : backoff.capMs
}
