import { attemptFaults, type Doubt } from '../stand/attempts.ts'
import { checkCausalOrder, groupBy, type Overtaking } from '../stand/causal-order.ts'
import { type Departure, explainDuplicates } from '../stand/explain.ts'
import type { Evidence } from './evidence.ts'
import type { LedgerEvent, LedgerTransaction } from './ledger.ts'

/** A delivery beyond an event's first. */
export interface Copy {
  readonly eventId: string
  readonly relay: string
  /** Undefined is unexplained. */
  readonly why: string | undefined
}

/** Every invariant, with each case in which it did not hold. */
export interface Verdict {
  readonly events: number
  readonly deliveries: number
  /** Committed, and neither delivered nor given up in a way that was meant to happen. */
  readonly lost: readonly LedgerEvent[]
  /** Delivered, and never committed. */
  readonly phantoms: readonly string[]
  readonly overtakings: readonly Overtaking[]
  /** Pairs of one lane whose order was compared. */
  readonly pairs: number
  readonly copies: readonly Copy[]
  /** Acknowledged commits that the database forgot; only a failover may do that. */
  readonly forgotten: number
  /** In words; empty is success. */
  readonly broken: readonly string[]
}

/** Judges a campaign. Pure: the same evidence gives the same verdict. `more` is what else did not hold, in words. */
export function judge(evidence: Evidence, more: readonly string[] = []): Verdict {
  const { arrivals, states, bookings, failovers } = evidence
  const transactions = evidence.transactions
  const existing = transactions.filter(({ tx }) => bookings.has(tx))
  const committed = existing.flatMap(({ events }) => events.filter(({ withdrawn }) => !withdrawn))
  const firstAt = new Map<string, number>()
  for (const [index, { eventId }] of arrivals.entries()) if (!firstAt.has(eventId)) firstAt.set(eventId, index)
  const stateOf = new Map(states.map((state) => [state.eventId, state]))
  const givenUp = (event: LedgerEvent): boolean => event.deadly && stateOf.get(event.eventId)?.status === 'failed'

  const lost = committed.filter((event) => !firstAt.has(event.eventId) && !givenUp(event))
  const phantoms = findPhantoms(transactions, new Set(committed.map(({ eventId }) => eventId)), evidence, firstAt)
  const { overtakings, pairs } = checkCausalOrder(
    existing.flatMap(({ events, committedAt }) =>
      events
        .filter((event) => !event.withdrawn && !event.delayed && !givenUp(event) && firstAt.has(event.eventId))
        .map((event) => ({ ...event, committedAt })),
    ),
    (eventId) => firstAt.get(eventId) ?? Infinity,
  )
  const copies = explainCopies(evidence)
  const forgotten = transactions.filter(({ tx, outcome }) => outcome === 'committed' && !bookings.has(tx))
  const resurrected = existing.filter(({ outcome }) => outcome === 'rolled-back')

  return {
    events: committed.length,
    deliveries: arrivals.length,
    lost,
    phantoms,
    overtakings,
    pairs,
    copies,
    forgotten: forgotten.length,
    broken: [
      ...none(
        'lost',
        lost.map((event) => where(event, stateOf.get(event.eventId)?.status)),
      ),
      ...none('delivered and never committed', phantoms),
      ...none(
        'delivered before an earlier one',
        overtakings.map(({ early, late }) => `${early.eventId} before ${late.eventId} (${early.lane})`),
      ),
      ...none(
        'delivered again without a reason',
        copies.filter(({ why }) => why === undefined).map(({ eventId, relay }) => `${eventId} by ${relay}`),
      ),
      ...(failovers.length === 0 ? none('transactions that the database forgot', forgotten.map(named)) : []),
      ...none('transactions that were rolled back and exist', resurrected.map(named)),
      ...none('events whose row and business row do not go together', findHalves(evidence)),
      ...none('rows that are neither published nor meant to fail', findUnfinished(evidence)),
      ...none('with attempts that are not its counted answers', findMiscounts(evidence)),
      ...none('published after its relay had stopped', findLatecomers(evidence)),
      ...evidence.unrest,
      ...evidence.troubles,
      ...none('errors of writers that are not about the connection', findErrors(evidence)),
      ...more,
    ],
  }
}

/** An unknown commit that the database has not is none. What a failover forgot was committed once. */
function findPhantoms(
  transactions: readonly LedgerTransaction[],
  committed: ReadonlySet<string>,
  { failovers }: Evidence,
  firstAt: ReadonlyMap<string, number>,
): string[] {
  const allowed = new Set(committed)
  if (failovers.length > 0) {
    for (const { outcome, events } of transactions) {
      if (outcome === 'rolled-back') continue
      for (const { eventId, withdrawn } of events) if (!withdrawn) allowed.add(eventId)
    }
  }
  return [...firstAt.keys()].filter((eventId) => !allowed.has(eventId))
}

/** Each explanation accounts for one extra delivery. */
function explainCopies({ arrivals, states, departures, answers, failovers }: Evidence): Copy[] {
  const all: Departure[] = [
    ...departures,
    ...failovers.map(({ cutAt, until }): Departure => ({ relay: undefined, how: 'failed over', at: cutAt, until })),
  ]
  const explained = explainDuplicates(arrivals, states, { departures: all, lostAcks: [] })
  const reasons = groupBy(explained, ({ eventId }) => eventId)
  const seen = new Map<string, number>()
  return arrivals.flatMap(({ eventId, relay }) => {
    const number = seen.get(eventId) ?? 0
    seen.set(eventId, number + 1)
    if (number === 0) return []
    const unknown = number <= answers.of('unknown', eventId) ? 'its outcome was unknown' : undefined
    return [{ eventId, relay, why: unknown ?? reasons.get(eventId)?.shift()?.why }]
  })
}

/** P1: an event exists if and only if its business transaction committed. */
function findHalves({ transactions, bookings, states }: Evidence): string[] {
  const rows = new Set(states.map(({ eventId }) => eventId))
  const wanted = new Set([...bookings.values()].flatMap(({ eventIds }) => eventIds))
  const known = new Set(transactions.flatMap(({ events }) => events.map(({ eventId }) => eventId)))
  return [
    ...[...wanted].filter((eventId) => !rows.has(eventId)).map((eventId) => `${eventId} has no row`),
    ...[...rows].filter((eventId) => !wanted.has(eventId)).map((eventId) => `${eventId} has no business row`),
    ...[...wanted].filter((eventId) => !known.has(eventId)).map((eventId) => `${eventId} is in no ledger`),
  ]
}

function findUnfinished({ states, transactions }: Evidence): string[] {
  const deadly = deadlyEvents(transactions)
  return states
    .filter(({ eventId, status }) => status !== (deadly.has(eventId) ? 'failed' : 'published'))
    .map(({ eventId, status }) => `${eventId} (${status})`)
}

/**
 * An answer may be unwritten where its relay was killed or lost its lease, or while somebody else's loss made two relays
 * act on one event: then the other's acknowledgement may have come first.
 */
function findMiscounts({ states, transactions, answers, departures, failovers }: Evidence): string[] {
  const deadly = deadlyEvents(transactions)
  const doubt: Doubt = (relay, at) =>
    failovers.some(({ until }) => at < until) ||
    departures.some(
      (departure) => departure.relay === relay || (departure.at <= at && at <= (departure.until ?? departure.at)),
    )
  return attemptFaults(
    states.filter(({ eventId }) => !deadly.has(eventId)),
    answers,
    doubt,
  )
}

/** The clock of a broker may show whole milliseconds only. */
function findLatecomers({ arrivals, stopped }: Evidence): string[] {
  return arrivals
    .filter(({ relay, at }) => {
      const end = stopped.get(relay)
      return end !== undefined && at !== undefined && at > end + 1000n
    })
    .map(({ eventId, relay }) => `${eventId} by ${relay}`)
}

/** A deadlock, a refused value or a missing schema would be the library's doing. */
function findErrors({ writerErrors }: Evidence): string[] {
  return Object.entries(writerErrors)
    .filter(([code]) => !isAboutTheConnection(code))
    .map(([code, count]) => `${code} ${count} times`)
}

/** What is neither a SQLSTATE nor a code of the library came from the driver or the socket. */
function isAboutTheConnection(code: string): boolean {
  if (/^(?=.*\d)[0-9A-Z]{5}$/.test(code)) return /^(08|53|57P|25006)/.test(code)
  return !/^(SCHEMA|EVENT|OPTIONS)_/.test(code)
}

function deadlyEvents(transactions: readonly LedgerTransaction[]): ReadonlySet<string> {
  return new Set(
    transactions.flatMap(({ events }) => events.filter(({ deadly }) => deadly).map(({ eventId }) => eventId)),
  )
}

function named({ tx }: LedgerTransaction): string {
  return tx
}

function where({ eventId, lane }: LedgerEvent, status: string | undefined): string {
  return `${eventId} (${lane}, ${status ?? 'no row'})`
}

export function none(what: string, found: readonly string[]): string[] {
  if (found.length === 0) return []
  const rest = found.length > 5 ? ` and ${found.length - 5} more` : ''
  return [`${found.length} ${what}: ${found.slice(0, 5).join(', ')}${rest}`]
}
