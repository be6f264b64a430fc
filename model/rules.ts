import { readingRules } from './reading-rules.ts'
import { at, type Rule } from './rule.ts'
import type { Defines } from './spin.ts'

const two: Defines = { RELAYS: 2, PLAIN_WRITERS: true, ANSWERS_AT_ONCE: true, TAKEOVERS: 1 }
const late: Defines = { EVENTS: 3, PLAIN_WRITERS: true }
const failover: Defines = { FAILOVERS: 1, PLAIN_WRITERS: true }
const whileDiscarded = at('operate/interleavings.test.ts', 'when the head is discarded')

/** What the relay remembers between two answers. */
const remembering: readonly Rule[] = [
  {
    name: 'met-ids-lower-the-low',
    rule: 'Rows of a lane in flight are ignored, and the smallest of their ids lowers the low of the lane.',
    without: 'MET_IDS_IGNORED',
    within: late,
    test: at(
      'relay/rules/late-commits.test.ts',
      "is found after the lane's higher id was read, while that one is being published",
    ),
  },
  {
    name: 'hit-resets-the-lows',
    rule: 'When a find reached its limit, every lane in flight is read from its start the next time.',
    without: 'HIT_KEEPS_LOWS',
    within: { ...late, HITS: 1 },
    test: at('relay/rules/late-commits.test.ts', 'reads a lane that is in flight from its start later'),
  },
  {
    name: 'hit-resets-a-lane-without-room',
    rule: 'When a find reached its limit, a lane that it went on with and that found no room is read from its start, too.',
    without: 'WAITING_LANE_KEEPS_LOW',
    within: { ...late, HITS: 1, DROPS: 1 },
    test: at('relay/rules/late-commits.test.ts', 'reads a lane from its start later, when there is no room for it now'),
  },
  {
    name: 'hit-sweeps',
    rule: 'When a find reached its limit, every owned slot is swept.',
    without: 'HIT_WITHOUT_SWEEP',
    within: { EVENTS: 1, HITS: 1 },
    test: at('relay/rules/late-commits.test.ts', 'leaves no event behind'),
  },
  {
    name: 'settled-lane-stays-in-flight',
    rule: 'A settled lane stays in flight until a find has looked behind its run.',
    without: 'FREED_AT_SETTLE',
    within: { EVENTS: 2 },
    test: at(
      'relay/rules/late-commits.test.ts',
      "is found after the lane's higher id was read, while that one is being published",
    ),
  },
  {
    name: 'older-find-frees-nothing',
    rule: 'A lane is freed only by a find that was issued after its settle.',
    without: 'FREED_BY_OLDER_FIND',
    within: { EVENTS: 2, CHECK_REPEATS: true },
    test: at('relay/rules/answers-on-their-way.test.ts', 'publishes nothing again that was settled meanwhile'),
  },
  {
    name: 'dropped-is-swept',
    rule: 'What is passed over marks its slot for a sweep.',
    without: 'DROPPED_UNMARKED',
    within: { EVENTS: 1, DROPS: 1 },
    test: at('relay/rules/runs.test.ts', 'without room goes out when there is some again'),
  },
]

/** Slots, connections and servers. */
const moving: readonly Rule[] = [
  {
    name: 'gained-is-swept',
    rule: 'A slot that was gained is swept.',
    without: 'GAINED_UNSWEPT',
    within: { ...two, EVENTS: 1 },
    test: at('relay/rules/moved-slots.test.ts', 'finds what arrived there before'),
  },
  {
    name: 'regained-is-swept',
    rule: 'A lane whose slot moved is dropped, and the slot is swept if it is owned again.',
    without: 'REGAINED_UNMARKED',
    within: { ...two, EVENTS: 2, TAKEOVERS: 2 },
    test: at('relay/rules/moved-slots.test.ts', 'goes on with a key whose run was stopped by the loss'),
  },
  {
    name: 'snapshot-is-reset',
    rule: 'On another connection or server the relay takes a new snapshot.',
    without: 'SNAPSHOT_KEPT',
    within: { ...failover, EVENTS: 2 },
    test: at('relay/rules/failovers.test.ts', 'finds what is committed under transaction ids that were used before'),
  },
  {
    name: 'reconnect-resets-the-lows',
    rule: 'On another connection or server every lane in flight is read from its start.',
    without: 'RECONNECT_KEEPS_LOWS',
    within: { ...failover, EVENTS: 3 },
    test: at('relay/rules/failovers.test.ts', 'delivers in order what is inserted under ids that were used before'),
  },
  {
    name: 'reconnect-sweeps',
    rule: 'On another connection or server every owned slot is swept.',
    without: 'RECONNECTED_UNSWEPT',
    within: { EVENTS: 1, CUTS: 1 },
    test: at('relay/rules/answers-on-their-way.test.ts', 'finds what was committed between two connections'),
  },
]

/** What settle writes. */
const settling: readonly Rule[] = [
  {
    name: 'skipped-is-settled-later',
    rule: 'A row that somebody has locked goes into the next batch, and its lane waits for it.',
    without: 'SKIPPED_TAKEN_FOR_SETTLED',
    within: { EVENTS: 1, LOCKS: 1 },
    test: at('relay/lock-timeouts.test.ts', 'an event that somebody has locked delays only itself'),
  },
  {
    name: 'lost-settle-is-repeated',
    rule: 'A settle whose answer was lost is sent again unchanged.',
    without: 'LOST_TAKEN_FOR_SETTLED',
    within: { EVENTS: 1, LOST_SETTLES: 1 },
    test: at('relay/rules/answers-on-their-way.test.ts', 'is written later when it never reached the server'),
  },
  {
    name: 'failure-matches-attempts',
    rule: 'A failure is counted only where the attempts are as they were read.',
    without: 'ATTEMPTS_UNMATCHED',
    within: { EVENTS: 1, REJECTIONS: 1, LOST_SETTLES: 1 },
    test: at('statements/due-and-settle.test.ts', 'counts a failure once, however often it is sent'),
  },
  {
    name: 'acknowledgement-matches-attempts',
    rule: 'An acknowledgement is written only where the attempts are as they were read.',
    without: 'ACKNOWLEDGED_WHATEVER_ATTEMPTS',
    within: { ...two, EVENTS: 2, REJECTIONS: 1 },
    test: at(
      'relay/rules/moved-slots.test.ts',
      'may see it acknowledged after its successor saw it rejected: the key goes on all the same',
    ),
  },
  {
    name: 'acknowledgement-matches-requeues',
    rule: 'An acknowledgement is written only where the requeues are as they were read.',
    without: 'REQUEUES_UNMATCHED',
    within: { EVENTS: 1, REQUEUES: 1, LOST_SETTLES: 1 },
    test: at(
      'operate/interleavings.test.ts',
      'may acknowledge it after it was requeued: that was another life, and it is published again',
    ),
  },
  {
    name: 'acknowledgement-matches-event-id',
    rule: 'An acknowledgement is matched on the event id, not on the id alone.',
    without: 'EVENT_ID_UNMATCHED',
    within: { ...failover, EVENTS: 2 },
    test: at('statements/due-and-settle.test.ts', 'marks no other event that came back under the same id'),
  },
  {
    name: 'gone-is-not-locked',
    rule: 'A settle tells a row that is gone from one that is locked.',
    without: 'GONE_TAKEN_FOR_LOCKED',
    within: { EVENTS: 1, DISCARDS: 1 },
    test: at('relay/rules/runs.test.ts', 'lets its key go on when the event that was rejected is gone by then'),
  },
  {
    name: 'run-stops-at-its-first-failure',
    rule: 'A run stops at the first event that is not acknowledged.',
    without: 'GOES_ON_AFTER_FAILURE',
    within: { EVENTS: 2, REJECTIONS: 1 },
    test: at('relay/rules/runs.test.ts', 'ends at its first failure, although more of it was read'),
  },
]

/** Statements that put a row in line, or open the way for one. */
const stamping: readonly Rule[] = [
  {
    name: 'due-stamps',
    rule: 'Due gives what it puts in line a new transaction id.',
    without: 'DUE_UNSTAMPED',
    within: { EVENTS: 1, REJECTIONS: 1 },
    test: at(
      'statements/due-and-settle.test.ts',
      'puts nothing in line before its time, and puts it in id order when its time has come',
    ),
  },
  {
    name: 'requeue-stamps',
    rule: 'Requeue gives what it puts in line a new transaction id.',
    without: 'REQUEUE_UNSTAMPED',
    within: { EVENTS: 1, REQUEUES: 1, REJECTIONS: 1, ATTEMPTS: 1 },
    test: at(
      'operate/requeue.test.ts',
      'brings a whole key out in order although it failed in another one, a few events at a time',
    ),
  },
  {
    name: 'removal-stamps-the-next',
    rule: 'Whoever takes a row away stamps one behind it.',
    without: 'REMOVAL_UNSTAMPED',
    within: { EVENTS: 2, DISCARDS: 1, REJECTIONS: 1 },
    test: whileDiscarded,
  },
  {
    name: 'removal-stamps-after-its-commit',
    rule: 'Whoever takes a row away stamps the one behind it in a second transaction, after the commit of the first.',
    without: 'STAMPED_IN_SAME_TRANSACTION',
    within: { EVENTS: 2, DISCARDS: 1, REJECTIONS: 1 },
    test: whileDiscarded,
  },
]

export const rules: readonly Rule[] = [...readingRules, ...remembering, ...moving, ...settling, ...stamping]

/** Rules that order and liveness do not need: without them spin finds nothing in these worlds either. */
export const spared: readonly { readonly without: string; readonly why: string; readonly within: Defines }[] = [
  {
    without: 'FAILURES_UNFENCED',
    why: 'failures are fenced so that a relay which lost its slot spends no attempt',
    within: { RELAYS: 2, PLAIN_WRITERS: true, EVENTS: 2, TAKEOVERS: 1, REJECTIONS: 2, LOST_SETTLES: 1 },
  },
  {
    without: 'EPOCH_IGNORED',
    why: 'epochs are compared so that one who lost the slot and has it again does not go on with what another published',
    within: { RELAYS: 2, PLAIN_WRITERS: true, EVENTS: 2, TAKEOVERS: 2 },
  },
  {
    without: 'GAINED_SWEPT_AT_ONCE',
    why: 'a gained slot may be swept before a find has carried it, as long as finds and sweeps take turns',
    within: { RELAYS: 2, PLAIN_WRITERS: true, EVENTS: 2, TAKEOVERS: 2 },
  },
]
