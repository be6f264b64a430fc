import type { Defines } from './spin.ts'

/** One bounded world that is searched whole. */
export interface Scope {
  readonly name: string
  /** What can happen in it, in words. */
  readonly what: string
  readonly defines: Defines
  /** How CI searches it; absent when it does not. */
  readonly quick?: 'endless' | 'exhaustive'
  /** Only on demand: it takes minutes and gigabytes. */
  readonly large?: true
}

/** With one relay nobody else explains a repeat, so repeats are checked too. */
const alone: Defines = { CHECK_REPEATS: true }
const two: Defines = { RELAYS: 2, PLAIN_WRITERS: true }

export const scopes: readonly Scope[] = [
  {
    name: 'writers',
    what: '3 events, every order of transaction ids, ids, commits and rollbacks',
    defines: { ...alone },
    quick: 'endless',
  },
  {
    name: 'failures',
    what: '3 events, 2 rejections, an answer that never comes',
    defines: { ...alone, REJECTIONS: 2, UNANSWERED: 1 },
  },
  {
    name: 'limits',
    what: '3 events, a find that reaches its limit, a lane without room or with a destination that takes nothing',
    defines: { ...alone, HITS: 1, DROPS: 1 },
    quick: 'exhaustive',
  },
  {
    name: 'connections',
    what: '3 events, a broken connection, a settle without an answer',
    defines: { ...alone, CUTS: 1, LOST_SETTLES: 1 },
    quick: 'exhaustive',
  },
  {
    name: 'locks',
    what: '3 events, a row that somebody locks, a rejection, a settle without an answer',
    defines: { ...alone, LOCKS: 1, REJECTIONS: 1, LOST_SETTLES: 1 },
  },
  {
    name: 'everything once',
    what: '2 events, a rejection, a limit, a lane without room, a broken connection, a settle without an answer',
    defines: { ...alone, EVENTS: 2, REJECTIONS: 1, HITS: 1, DROPS: 1, CUTS: 1, LOST_SETTLES: 1 },
    quick: 'endless',
  },
  {
    name: 'requeue',
    what: '3 events, one fails or is published, an operator puts it back in line, a settle without an answer',
    defines: { ...alone, REQUEUES: 1, REJECTIONS: 1, ATTEMPTS: 1, LOST_SETTLES: 1 },
  },
  {
    name: 'discard',
    what: '3 events, one is held or waits, an operator takes any of them away',
    defines: { ...alone, DISCARDS: 1, REJECTIONS: 1, ATTEMPTS: 1, ENDS: 'HELD' },
  },
  {
    name: 'failover',
    what: '3 events, the server is lost with its last transactions',
    defines: { FAILOVERS: 1 },
  },
  {
    name: 'takeover',
    what: '2 relays, 3 events, the slot moves once',
    defines: { ...two, TAKEOVERS: 1 },
    quick: 'exhaustive',
  },
  {
    name: 'takeover and back',
    what: '2 relays, 2 events, the slot moves twice',
    defines: { ...two, EVENTS: 2, TAKEOVERS: 2 },
    quick: 'exhaustive',
  },
  {
    name: 'takeover with failures',
    what: '2 relays, 2 events, the slot moves once, 2 rejections, a settle without an answer',
    defines: { ...two, EVENTS: 2, TAKEOVERS: 1, REJECTIONS: 2, LOST_SETTLES: 1 },
  },
  {
    name: 'crash',
    what: '2 relays, 2 events, one relay dies, the slot moves, a rejection, an answer that never comes',
    defines: { ...two, EVENTS: 2, TAKEOVERS: 1, CRASHES: 1, REJECTIONS: 1, UNANSWERED: 1 },
  },
  {
    name: 'without a lease',
    what: '2 relays, 2 events, the slot moves once, a rejection; nothing keeps the loser from new runs (order only)',
    defines: { ...two, EVENTS: 2, TAKEOVERS: 1, REJECTIONS: 1, LEASE_IGNORED: true, ORDER_ONLY: true },
  },
  {
    name: 'takeover with any writers',
    what: '2 relays, 2 events, every order of transaction ids, ids, commits and rollbacks, the slot moves twice',
    defines: { RELAYS: 2, EVENTS: 2, TAKEOVERS: 2 },
  },
  {
    name: 'takeover with limits',
    what: '2 relays, 2 events, the slot moves once, a find that reaches its limit, a lane without room',
    defines: { ...two, EVENTS: 2, TAKEOVERS: 1, HITS: 1, DROPS: 1 },
  },
  {
    name: 'takeover and requeue',
    what: '2 relays, 2 events, the slot moves once, one fails or is published, an operator puts it back in line',
    defines: { ...two, EVENTS: 2, TAKEOVERS: 1, REJECTIONS: 1, ATTEMPTS: 1, REQUEUES: 1 },
  },
  {
    name: 'takeover and discard',
    what: '2 relays, 2 events, the slot moves once, one is held or waits, an operator takes any of them away',
    defines: { ...two, EVENTS: 2, TAKEOVERS: 1, REJECTIONS: 1, ATTEMPTS: 1, ENDS: 'HELD', DISCARDS: 1 },
  },
  {
    name: 'takeover at failover',
    what: '2 relays, 2 events, the slot moves once, the server is lost with its last transactions',
    defines: { ...two, EVENTS: 2, TAKEOVERS: 1, FAILOVERS: 1 },
    large: true,
  },
  {
    name: 'takeover, back and failures',
    what: '2 relays, 2 events, the slot moves twice, a rejection',
    defines: { ...two, EVENTS: 2, TAKEOVERS: 2, REJECTIONS: 1 },
    large: true,
  },
]
