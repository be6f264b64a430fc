import type { AnswerCounts, EventState } from '../stand/attempts.ts'
import type { Arrival, Departure } from '../stand/explain.ts'
import type { Booking } from './business-rows.ts'
import type { Fault } from './faults.ts'
import type { LedgerTransaction } from './ledger.ts'
import type { Failover } from './stage.ts'

/** What a campaign saw, before anybody judged it. Moments are microseconds since 1970 unless they say otherwise. */
export interface Evidence {
  readonly campaign: string
  readonly seed: number
  readonly seconds: number
  readonly transactions: readonly LedgerTransaction[]
  /** Transactions whose business row the database has. */
  readonly bookings: ReadonlyMap<string, Booking>
  readonly arrivals: readonly Arrival[]
  readonly states: readonly EventState[]
  readonly answers: AnswerCounts
  readonly faults: readonly Fault[]
  readonly departures: readonly Departure[]
  /** When each relay that stopped had nothing in flight any more. */
  readonly stopped: ReadonlyMap<string, bigint>
  readonly failovers: readonly Failover[]
  /** How often writers' transactions ended with an error, by code. */
  readonly writerErrors: Readonly<Record<string, number>>
  /** How long the last event took to be out after the last writer had stopped, in ms. */
  readonly quietMs: number
  /** What was not as it has to be once everything was quiet. */
  readonly unrest: readonly string[]
  /** What else should not have happened: a published row that came back, a process that ended by itself. */
  readonly troubles: readonly string[]
}
