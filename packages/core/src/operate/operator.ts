import type { Ordering } from '../contract/event.ts'
import { checkOptions, required, textOption } from '../contract/option-table.ts'
import type { HoldTarget } from '../storage/hold-lane.ts'
import { type Counts, counts, type CountsOptions } from './counts.ts'
import type { DiscardFilter, ReplayFilter, RequeueFilter, RescheduleFilter } from './filter.ts'
import { hold, type HoldOptions, type HoldReport, release, type ReleaseOptions } from './holds.ts'
import { purge, type PurgeOptions, type PurgeReport } from './purge.ts'
import type { OperatorParts } from './session.ts'
import { type OrderingReport, setOrdering, type SetOrderingOptions } from './set-ordering.ts'
import type { VerbOptions, VerbReport } from './verb-options.ts'
import { discard, replay, type ReplayReport, requeue, reschedule, type RescheduleOptions } from './verbs.ts'

/** Who acts. */
export interface OperatorOptions {
  /** Name that stands in the audit: a person, or the program that acts for one. At most 255 bytes. */
  readonly actor: string
}

/**
 * What a person may do to an outbox while its relays run. Every verb can say what it would do (`dryRun`), works in
 * transactions of one batch each and in none that waits for anybody's lock, can be interrupted and called again, and
 * writes who did it into the audit, in the same transaction.
 *
 * All of them reject with OutboxError OPTIONS_INVALID (every problem in one error), SCHEMA_MISSING, SCHEMA_BEHIND or
 * DATABASE_UNREACHABLE; those with a filter also with FILTER_EMPTY.
 */
export interface Operator {
  /** How many events there are, by state and by topic. Its cost is bounded, however many there are. */
  counts(options?: CountsOptions): Promise<Counts>
  /**
   * Puts failed and held events back in line as if they had never been tried. Their failures stay. Events of one key go
   * out in their order, and before what is behind them in line; what was published meanwhile stays published, and the
   * report says how much that is.
   */
  requeue(filter: RequeueFilter, options?: VerbOptions): Promise<VerbReport>
  /**
   * Deletes events that are not published, for good; the audit keeps their ids. What stood behind them goes on at once.
   * One that a relay is publishing at this moment may still arrive, once.
   */
  discard(filter: DiscardFilter, options?: VerbOptions): Promise<VerbReport>
  /**
   * Gives pending and scheduled events another time, or `now`. An event that was never tried lets its key go on
   * meanwhile, one that was tried keeps it waiting. One that a relay is publishing at this moment arrives, and again at
   * its new time.
   */
  reschedule(filter: RescheduleFilter, options: RescheduleOptions): Promise<VerbReport>
  /**
   * Publishes published events again, with their event ids: a consumer that remembers them drops them. The key of each
   * gets older events after newer ones, and the report says how many.
   */
  replay(filter: ReplayFilter, options?: VerbOptions): Promise<ReplayReport>
  /** Stops a topic, or a key. What is in flight is still published; nothing is lost meanwhile. */
  hold(target: HoldTarget, options: HoldOptions): Promise<HoldReport>
  /** Lets a topic or a key go on: a key at once, a topic with the next heartbeat of its relays. */
  release(target: HoldTarget, options?: ReleaseOptions): Promise<HoldReport>
  /** Deletes published events whose retention is over, which relays also do by themselves. */
  purge(options?: PurgeOptions): Promise<PurgeReport>
  /**
   * Changes the mode of the outbox for events written from now on. It needs the owner of the table.
   *
   * @throws OutboxError NOT_DRAINED when events are in line or scheduled, without `force`; TOPICS_OVERLAP when total
   *   order is asked for and several groups, or one with a part of the topics, publish; TABLE_BUSY when some transaction
   *   held the table all the time.
   */
  setOrdering(ordering: Ordering, options?: SetOrderingOptions): Promise<OrderingReport>
}

/** @throws OutboxError OPTIONS_INVALID without an actor. */
export function createOperator(given: Omit<OperatorParts, 'actor'>, options: OperatorOptions): Operator {
  checkOptions('operator', options, { actor: required(textOption({ maxBytes: 255 })) })
  const parts: OperatorParts = { ...given, actor: options.actor }
  return {
    counts: async (more = {}) => counts(parts, more),
    requeue: async (filter, more = {}) => requeue(parts, filter, more),
    discard: async (filter, more = {}) => discard(parts, filter, more),
    reschedule: async (filter, more) => reschedule(parts, filter, more),
    replay: async (filter, more = {}) => replay(parts, filter, more),
    hold: async (target, more) => hold(parts, target, more),
    release: async (target, more = {}) => release(parts, target, more),
    purge: async (more = {}) => purge(parts, more),
    setOrdering: async (ordering, more = {}) => setOrdering(parts, ordering, more),
  }
}
