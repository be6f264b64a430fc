import type { Lies } from '../stand/lying-publisher.ts'

/** What a campaign is played on. */
export interface StageOptions {
  /** Relay processes. */
  readonly relays: number
  /** Writer processes, and transactions at once in each. */
  readonly writers: number
  readonly hands: number
  /** Topics, at most 3, and keys of each. */
  readonly topics: number
  readonly keys: number
  /** Share of events in the lane of total order; a broker with several streams has no order for it. */
  readonly total: number
  /** Share of events for later. */
  readonly delayed: number
  readonly pauseMs: number
  readonly openMs: number
  readonly serializeWrites: boolean
  readonly broker: 'memory' | 'redis'
  /** Whether relays reach the broker through a proxy that can go wrong. */
  readonly brokerProxy: boolean
  /** How relays and writers reach the database; behind a pooler there is a proxy too. */
  readonly route: 'direct' | 'proxy' | 'pooler'
  readonly leaseMs: number
  readonly publishTimeoutMs: number
  readonly statementTimeoutMs: number
  /** Shares of tries that the broker answers so. */
  readonly rejected: number
  readonly unavailable: number
  /** By how many ms the clocks of the relay processes are off, in turn. */
  readonly skewMs: readonly number[]
  /** Makes the relays' publishers lie, to show that a campaign notices. */
  readonly lies: Lies | undefined
  /** Whether a relay that ends by itself is replaced, as a supervisor would, and is no fault of its own. */
  readonly supervised: boolean
}

export const defaultStage: StageOptions = {
  relays: 3,
  writers: 2,
  hands: 4,
  topics: 3,
  keys: 8,
  total: 0.03,
  delayed: 0.08,
  pauseMs: 25,
  openMs: 150,
  serializeWrites: false,
  broker: 'memory',
  brokerProxy: false,
  route: 'direct',
  leaseMs: 2000,
  publishTimeoutMs: 2000,
  statementTimeoutMs: 4000,
  rejected: 0.02,
  unavailable: 0.01,
  skewMs: [],
  lies: undefined,
  supervised: false,
}
