import type { Placed } from '../stand/causal-order.ts'

/** One event as its writer knows it. Its moments are microseconds of the monotonic clock that all processes share. */
export interface LedgerEvent extends Omit<Placed, 'committedAt'> {
  /** Row id; after a failover it may belong to another event. */
  readonly id: string
  /** Scheduled for later: it has no place in the order of its lane. */
  readonly delayed: boolean
  /** Rolled back with a savepoint, so it does not exist whatever becomes of its transaction. */
  readonly withdrawn: boolean
  /** It ends every process that publishes it. */
  readonly deadly: boolean
}

/**
 * What became of a transaction, as far as its writer could tell.
 *
 * unknown: COMMIT was on its way when the writer died or lost its connection. Only the database can say.
 */
export type Outcome = 'committed' | 'rolled-back' | 'unknown'

export interface LedgerTransaction {
  readonly tx: string
  readonly events: readonly LedgerEvent[]
  outcome: Outcome
  /** When COMMIT had returned; null when nobody was told. */
  committedAt: number | null
}

/** What a writer process says. A transaction is told before its COMMIT or ROLLBACK is sent, and its end afterwards. */
export type FromWriter =
  | { readonly kind: 'started' }
  | { readonly kind: 'committing'; readonly tx: string; readonly events: readonly LedgerEvent[] }
  | { readonly kind: 'committed'; readonly tx: string; readonly at: number }
  | { readonly kind: 'rolling-back'; readonly tx: string; readonly events: readonly LedgerEvent[] }
  /** The transaction ended with an error, whose SQLSTATE or code is given. */
  | { readonly kind: 'failed'; readonly tx: string; readonly code: string }

export interface WriterOrders {
  readonly name: string
  readonly databaseUrl: string
  readonly seed: number
  /** Transactions at once. */
  readonly hands: number
  /** Longest wait of a hand between two transactions, in ms. */
  readonly pauseMs: number
  /** Longest time that some transactions stay open, in ms. */
  readonly openMs: number
  readonly topics: number
  readonly keys: number
  /** Share of events in the lane of total order. */
  readonly total: number
  readonly delayed: number
  readonly serializeWrites: boolean
}

/** The writers' side of the comparison, kept by a process that nobody kills. */
export interface Ledger {
  readonly transactions: ReadonlyMap<string, LedgerTransaction>
  /** Events of transactions whose COMMIT returned. */
  readonly committed: number
  /** How often transactions ended with an error, by code. */
  readonly errors: Readonly<Record<string, number>>
  hear(news: Exclude<FromWriter, { kind: 'started' }>): void
}

/** Microseconds of the clock that all processes of this machine share and that nobody sets. */
export function monotonicTime(): number {
  return Number(process.hrtime.bigint() / 1000n)
}

export function createLedger(): Ledger {
  const transactions = new Map<string, LedgerTransaction>()
  const errors: Record<string, number> = {}
  let committed = 0
  return {
    transactions,
    errors,
    get committed() {
      return committed
    },
    hear(news) {
      const { tx } = news
      if (news.kind === 'committing')
        transactions.set(tx, { tx, events: news.events, outcome: 'unknown', committedAt: null })
      else if (news.kind === 'rolling-back')
        transactions.set(tx, { tx, events: news.events, outcome: 'rolled-back', committedAt: null })
      else if (news.kind === 'failed') errors[news.code] = (errors[news.code] ?? 0) + 1
      else {
        const transaction = transactions.get(tx)
        if (transaction === undefined) throw new Error(`${tx} was committed before it was told`)
        transaction.outcome = 'committed'
        transaction.committedAt = news.at
        committed += transaction.events.filter(({ withdrawn }) => !withdrawn).length
      }
    },
  }
}
