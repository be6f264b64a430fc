import { describe, expect, test } from 'vitest'
import { countAnswers, type EventState } from '../stand/attempts.ts'
import type { Arrival } from '../stand/explain.ts'
import type { Booking } from './business-rows.ts'
import type { Evidence } from './evidence.ts'
import { judge } from './judge.ts'
import type { LedgerEvent, LedgerTransaction } from './ledger.ts'

// Two keys. On `k` the transactions A, B and C follow each other; on `m` D and E overlap.
const moments: Record<string, { lane: string; sentAt: number; committedAt: number }> = {
  A: { lane: 'k', sentAt: 10, committedAt: 20 },
  B: { lane: 'k', sentAt: 30, committedAt: 40 },
  C: { lane: 'k', sentAt: 50, committedAt: 60 },
  D: { lane: 'm', sentAt: 10, committedAt: 40 },
  E: { lane: 'm', sentAt: 20, committedAt: 30 },
}

function event(eventId: string, change: Partial<LedgerEvent> = {}): LedgerEvent {
  const { lane = 'k', sentAt = 0 } = moments[eventId] ?? {}
  return { id: '1', eventId, lane, sentAt, delayed: false, withdrawn: false, deadly: false, ...change }
}

function transaction(name: string, change: Partial<LedgerTransaction> = {}): LedgerTransaction {
  const committedAt = moments[name]?.committedAt ?? null
  return { tx: name, events: [event(name)], outcome: 'committed', committedAt, ...change }
}

const everybody = Object.keys(moments)

function bookings(): Map<string, Booking> {
  return new Map(everybody.map((name) => [name, { eventIds: [name], committedAt: 0n }]))
}

function states(change: Record<string, Partial<EventState>> = {}): EventState[] {
  return everybody.map((eventId) => ({
    eventId,
    status: 'published',
    attempts: 0,
    rejected: 0,
    unknown: 0,
    publishedAt: 1000n,
    ...change[eventId],
  }))
}

function arriving(order: string, relay = 'relay-1', at = 900n): Arrival[] {
  return Array.from(order, (eventId) => ({ eventId, relay, at }))
}

function evidence(change: Partial<Evidence> = {}): Evidence {
  return {
    campaign: 'constructed',
    seed: 1,
    seconds: 1,
    transactions: everybody.map((name) => transaction(name)),
    bookings: bookings(),
    arrivals: arriving('ABCDE'),
    states: states(),
    answers: countAnswers(),
    faults: [],
    departures: [],
    stopped: new Map(),
    failovers: [],
    writerErrors: {},
    quietMs: 0,
    unrest: [],
    troubles: [],
    ...change,
  }
}

const broken = (change: Partial<Evidence>): readonly string[] => judge(evidence(change)).broken

test('a clean campaign breaks nothing', () => {
  expect(judge(evidence())).toMatchObject({ broken: [], events: 5, deliveries: 5, pairs: 4, copies: [], forgotten: 0 })
})

describe('what was written', () => {
  test('a committed event that the broker never had is lost', () => {
    const { lost, broken: what } = judge(evidence({ arrivals: arriving('ACDE') }))
    expect(lost.map(({ eventId }) => eventId)).toEqual(['B'])
    expect(what).toEqual(['1 lost: B (k, published)'])
  })

  test('an unknown commit that the database has may not be lost', () => {
    const unknown = transaction('B', { outcome: 'unknown', committedAt: null })
    const transactions = ['A', 'C', 'D', 'E'].map((name) => transaction(name)).concat(unknown)
    expect(broken({ transactions })).toEqual([])
    expect(judge(evidence({ transactions, arrivals: arriving('ACDE') })).lost).toHaveLength(1)
  })

  test('an unknown commit that the database has not is none', () => {
    const transactions = [...everybody.map((name) => transaction(name)), transaction('F', { outcome: 'unknown' })]
    expect(broken({ transactions })).toEqual([])
    expect(broken({ transactions, arrivals: arriving('ABCDEF') })).toEqual(['1 delivered and never committed: F'])
  })

  test.each<[string, Partial<LedgerTransaction>]>([
    ['that was rolled back', { outcome: 'rolled-back' }],
    ['whose savepoint was rolled back', { events: [event('F', { withdrawn: true })] }],
  ])('an event %s may not be delivered', (_, change) => {
    const transactions = [...everybody.map((name) => transaction(name)), transaction('F', change)]
    const existing = bookings()
    if (change.outcome === undefined) existing.set('F', { eventIds: [], committedAt: 0n })
    expect(broken({ transactions, bookings: existing })).toEqual([])
    expect(broken({ transactions, bookings: existing, arrivals: arriving('ABCDEF') })).toEqual([
      '1 delivered and never committed: F',
    ])
  })

  test('a row without its business row is found, and a business row without its row', () => {
    const existing = bookings()
    existing.delete('E')
    expect(broken({ bookings: existing }).join()).toContain('E has no business row')
    expect(broken({ states: states().slice(0, 4) }).join()).toContain('E has no row')
  })

  test('a commit that the database forgot is found', () => {
    const transactions = [...everybody.map((name) => transaction(name)), transaction('F')]
    expect(broken({ transactions })).toEqual(['1 transactions that the database forgot: F'])
  })

  test('a failover may forget a commit, delivered or not', () => {
    const transactions = [...everybody.map((name) => transaction(name)), transaction('F')]
    const failovers = [{ cutAt: 500n, until: 1000n }]
    const verdict = judge(evidence({ transactions, failovers, arrivals: arriving('FABCDE') }))
    expect(verdict).toMatchObject({ broken: [], forgotten: 1, events: 5 })
  })
})

describe('order', () => {
  test('an event that was delivered before one that was committed before it is found', () => {
    const { overtakings, broken: what } = judge(evidence({ arrivals: arriving('ACBDE') }))
    expect(overtakings.map(({ early, late }) => [early.eventId, late.eventId])).toEqual([['C', 'B']])
    expect(what).toEqual(['1 delivered before an earlier one: C before B (k)'])
  })

  test('events of transactions that overlapped have no order', () => {
    expect(broken({ arrivals: arriving('ABCED') })).toEqual([])
  })

  test('nobody has to wait for a commit that nobody was told of', () => {
    const unknown = transaction('B', { outcome: 'unknown', committedAt: null })
    const transactions = ['A', 'C', 'D', 'E'].map((name) => transaction(name)).concat(unknown)
    expect(broken({ transactions, arrivals: arriving('ACBDE') })).toEqual([])
    expect(broken({ transactions, arrivals: arriving('BACDE') })).not.toEqual([])
  })

  test('an event for later has no place in the order', () => {
    const transactions = everybody.map((name) =>
      transaction(name, { events: [event(name, { delayed: name === 'B' })] }),
    )
    expect(broken({ transactions, arrivals: arriving('ACBDE') })).toEqual([])
  })

  test('a later copy does not make an event late', () => {
    const departures = [{ relay: 'relay-1', how: 'killed', at: 950n } as const]
    expect(broken({ arrivals: arriving('ABCDEA'), departures })).toEqual([])
  })
})

describe('copies', () => {
  const copy = { arrivals: [...arriving('ABCDE'), ...arriving('A', 'relay-2', 980n)] }

  test('one that nothing explains is found', () => {
    expect(broken(copy)).toEqual(['1 delivered again without a reason: A by relay-2'])
  })

  test('a killed relay explains what it had not settled', () => {
    const departures = [{ relay: 'relay-1', how: 'killed', at: 950n } as const]
    expect(judge(evidence({ ...copy, departures }))).toMatchObject({ broken: [], copies: [{ eventId: 'A' }] })
    const settled = states({ A: { publishedAt: 940n } })
    expect(broken({ ...copy, departures, states: settled })).toHaveLength(1)
  })

  test('a lost lease explains what was in flight then, and nothing that came later', () => {
    const lost = { relay: 'relay-1', how: 'lost its lease', at: 850n } as const
    expect(broken({ ...copy, departures: [{ ...lost, until: 950n }] })).toEqual([])
    expect(broken({ ...copy, departures: [{ ...lost, until: 890n }] })).toHaveLength(1)
  })

  test('an unknown outcome explains one copy of each of its events', () => {
    const answers = countAnswers()
    answers.add('relay-1', { acknowledged: [], failure: 'unknown', failed: ['A'] })
    expect(broken({ ...copy, answers })).toEqual([])
    expect(broken({ answers, arrivals: arriving('ABCDEAA') })).toHaveLength(1)
  })

  test('a failover explains what its server did not know, of any relay', () => {
    const failovers = [{ cutAt: 800n, until: 1000n }]
    expect(broken({ ...copy, failovers })).toEqual([])
    expect(broken({ ...copy, failovers, states: states({ A: { publishedAt: 790n } }) })).toHaveLength(1)
  })
})

describe('rows', () => {
  test.each<[string, Partial<EventState>]>([
    ['was not published', { status: 'pending', publishedAt: undefined }],
    ['was given up', { status: 'failed', publishedAt: undefined }],
    ['has an attempt that no answer explains', { attempts: 1, rejected: 1 }],
  ])('one that %s is found', (_, change) => {
    expect(broken({ states: states({ B: change }) })).toHaveLength(1)
  })

  test('a rejection that was not counted is found, unless its relay departed', () => {
    const answers = countAnswers()
    answers.add('relay-1', { acknowledged: [], failure: 'rejected', failed: ['B'] }, 900n)
    expect(broken({ answers })).toHaveLength(1)
    expect(broken({ answers, departures: [{ relay: 'relay-1', how: 'killed', at: 950n }] })).toEqual([])
    expect(broken({ answers, states: states({ B: { attempts: 1, rejected: 1 } }) })).toEqual([])
  })

  test('an event that ends its relay has to be given up, and then is not lost', () => {
    const transactions = everybody.map((name) => transaction(name, { events: [event(name, { deadly: name === 'B' })] }))
    const arrivals = arriving('ACDE')
    expect(broken({ transactions, arrivals, states: states({ B: { status: 'failed', attempts: 1 } }) })).toEqual([])
    expect(broken({ transactions, arrivals })).not.toEqual([])
  })
})

test('what a relay published after it had stopped is found', () => {
  expect(broken({ stopped: new Map([['relay-1', 2000n]]) })).toEqual([])
  const late = [...arriving('ABCD'), ...arriving('E', 'relay-1', 9000n)]
  expect(broken({ stopped: new Map([['relay-1', 2000n]]), arrivals: late })).toEqual([
    '1 published after its relay had stopped: E by relay-1',
  ])
})

test('errors of writers that are not about the connection are found', () => {
  expect(broken({ writerErrors: { ECONNRESET: 3, '57P01': 1, '25006': 2, 'timeout exceeded': 1 } })).toEqual([])
  expect(broken({ writerErrors: { '40P01': 2, SCHEMA_MISSING: 1 } })).toEqual([
    '2 errors of writers that are not about the connection: 40P01 2 times, SCHEMA_MISSING 1 times',
  ])
})

test('unrest, troubles and what a campaign adds are broken promises', () => {
  const words = { unrest: ['a lock'], troubles: ['a relay ended by itself'] }
  expect(judge(evidence(words), ['and more']).broken).toEqual(['a lock', 'a relay ended by itself', 'and more'])
})
