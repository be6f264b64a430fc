import { describe, expect, test } from 'vitest'
import { attemptFaults, countAnswers, type EventState } from '../stand/attempts.ts'
import { explainDuplicates } from '../stand/explain.ts'
import { proveOrder, type Written } from '../stand/order-proof.ts'
import { type Evidence, judge } from '../stand/verdict.ts'

const written: Written[] = ['a', 'b'].flatMap((key) =>
  [1, 2, 3].map((position) => ({ eventId: `${key}${position}`, key, position })),
)
const arriving = (...eventIds: string[]): { eventId: string; relay: string }[] =>
  eventIds.map((eventId) => ({ eventId, relay: 'relay-1' }))
const inOrder = ['a1', 'b1', 'b2', 'a2', 'a3', 'b3']

function states(change: Partial<EventState> = {}): EventState[] {
  return written.map(({ eventId }) => ({
    eventId,
    status: 'published',
    attempts: 0,
    rejected: 0,
    unknown: 0,
    publishedAt: 100n,
    ...change,
  }))
}

function evidence(change: Partial<Evidence> = {}): Evidence {
  return {
    options: {
      publisher: 'memory',
      events: 6,
      keys: 2,
      relays: 1,
      writers: 1,
      rejected: 0,
      unavailable: 0,
      lostAcks: 0,
      kill: 0,
      leaseMs: 2000,
      backoffMs: 50,
      seed: 1,
      timeout: 1,
      json: true,
    },
    written,
    arrivals: arriving(...inOrder),
    states: states(),
    answers: countAnswers(),
    departures: [],
    lostAcks: [],
    troubles: [],
    seconds: 1,
    ...change,
  }
}

describe('the order proof', () => {
  test('finds nothing where nothing is wrong, however the keys mix', () => {
    expect(proveOrder(written, arriving(...inOrder))).toEqual({
      written: 6,
      published: 6,
      lost: [],
      outOfOrder: [],
      phantoms: [],
      duplicates: [],
      unexplained: 0,
    })
  })

  test('finds a lost event', () => {
    const proof = proveOrder(written, arriving('a1', 'a3', 'b1', 'b2', 'b3'))
    expect(proof.lost.map(({ eventId }) => eventId)).toEqual(['a2'])
    expect(proof.published).toBe(5)
    // What is missing does not make what follows late.
    expect(proof.outOfOrder).toEqual([])
  })

  test('finds an event that arrived after its successor', () => {
    const proof = proveOrder(written, arriving('a1', 'a3', 'a2', 'b1', 'b2', 'b3'))
    expect(proof.outOfOrder.map(({ eventId }) => eventId)).toEqual(['a2'])
  })

  test('judges order by first deliveries', () => {
    const proof = proveOrder(written, arriving('a1', 'a2', 'a1', 'a3', 'b1', 'b2', 'b3'))
    expect(proof.outOfOrder).toEqual([])
    expect(proof).toMatchObject({ duplicates: [{ eventId: 'a1', why: undefined }], unexplained: 1 })
  })

  test('lets one explanation account for one extra delivery', () => {
    const proof = proveOrder(written, arriving(...inOrder, 'a1', 'a1'), [{ eventId: 'a1', why: 'lost' }])
    expect(proof.duplicates.map(({ why }) => why)).toEqual(['lost', undefined])
    expect(proof.unexplained).toBe(1)
  })

  test('finds an event that nobody committed', () => {
    expect(proveOrder(written, arriving(...inOrder, 'x1')).phantoms).toEqual(['x1'])
  })
})

describe('explanations', () => {
  const departures = [{ relay: 'relay-1', how: 'killed' as const, at: 50n }]

  test('a killed relay explains what it had not settled when it was dead', () => {
    const explained = explainDuplicates(arriving('a1'), states(), { departures, lostAcks: [] })
    expect(explained).toEqual([{ eventId: 'a1', why: 'relay-1 was killed with it in flight' }])
  })

  test('a killed relay does not explain what it had settled before', () => {
    expect(explainDuplicates(arriving('a1'), states({ publishedAt: 50n }), { departures, lostAcks: [] })).toEqual([])
  })

  test('a killed relay does not explain what another one brought', () => {
    const arrivals = [{ eventId: 'a1', relay: 'relay-2' }]
    expect(explainDuplicates(arrivals, states(), { departures, lostAcks: [] })).toEqual([])
  })

  test('a lost acknowledgement explains the events of its run', () => {
    const lostAcks = [{ relay: 'relay-1', eventIds: ['a1', 'a2'] }]
    expect(explainDuplicates([], states(), { departures: [], lostAcks }).map(({ eventId }) => eventId)).toEqual([
      'a1',
      'a2',
    ])
  })
})

describe('attempts', () => {
  const rejectedOnce = countAnswers()
  rejectedOnce.add('relay-1', { acknowledged: [], failure: 'rejected', failed: ['a1'] })
  const unknownOnce = countAnswers()
  unknownOnce.add('relay-1', { acknowledged: [], failure: 'unknown', failed: ['a1'] })
  const [first] = states()
  const state = (change: Partial<EventState>): EventState[] => (first === undefined ? [] : [{ ...first, ...change }])
  const nobody = (): boolean => false

  test('a rejection that was counted once is right', () => {
    expect(attemptFaults(state({ attempts: 1, rejected: 1 }), rejectedOnce, nobody)).toEqual([])
  })

  test.each([
    ['was not counted', { attempts: 0, rejected: 0 }],
    ['was counted twice', { attempts: 2, rejected: 2 }],
    ['left no trace beside its attempt', { attempts: 1, rejected: 0 }],
  ])('a rejection that %s is found', (_, change) => {
    expect(attemptFaults(state(change), rejectedOnce, nobody)).not.toEqual([])
  })

  test('a rejection that only a killed relay heard may be uncounted', () => {
    expect(attemptFaults(state({}), rejectedOnce, (relay) => relay === 'relay-1')).toEqual([])
  })

  test('an unknown outcome may count or not, and never twice', () => {
    expect(attemptFaults(state({}), unknownOnce, nobody)).toEqual([])
    expect(attemptFaults(state({ attempts: 1, unknown: 1 }), unknownOnce, nobody)).toEqual([])
    expect(attemptFaults(state({ attempts: 2, unknown: 2 }), unknownOnce, nobody)).toHaveLength(1)
  })

  test('an outage that cost an attempt is found', () => {
    const outage = countAnswers()
    outage.add('relay-1', { acknowledged: [], failure: 'unavailable', failed: ['a1'] })
    expect(attemptFaults(state({ attempts: 1 }), outage, nobody)).toHaveLength(1)
  })
})

describe('the verdict', () => {
  test('a clean run breaks nothing', () => {
    expect(judge(evidence())).toMatchObject({
      broken: [],
      figures: { ok: true, lost: 0, outOfOrder: 0, duplicates: 0 },
    })
  })

  test.each<[string, Partial<Evidence>, Record<string, unknown>]>([
    ['a lost event', { arrivals: arriving('a1', 'b1', 'b2', 'a2', 'a3') }, { lost: 1, published: 5 }],
    ['swapped events', { arrivals: arriving('a2', 'a1', 'a3', 'b1', 'b2', 'b3') }, { outOfOrder: 1 }],
    ['a duplicate', { arrivals: arriving(...inOrder, 'a3') }, { duplicates: 1, unexplained: 1 }],
    ['an event of a transaction that rolled back', { arrivals: arriving(...inOrder, 'x') }, { phantoms: 1 }],
    ['a row that was given up', { states: states({ status: 'failed' }) }, { published: 6 }],
    ['an attempt that no answer explains', { states: states({ attempts: 1, rejected: 1 }) }, { miscounted: 6 }],
    ['a relay that ended by itself', { troubles: ['relay-1 ended with 1'] }, {}],
    [
      'fewer events than were asked for',
      { written: written.slice(0, 5), arrivals: arriving('a1', 'a2', 'a3', 'b1', 'b2') },
      { written: 5 },
    ],
  ])('%s breaks the run', (_, change, figures) => {
    const verdict = judge(evidence(change))
    expect(verdict.broken).not.toEqual([])
    expect(verdict.figures).toMatchObject({ ok: false, ...figures })
  })

  test('a fault that was asked for and never happened breaks the run', () => {
    const { options } = evidence()
    expect(judge(evidence({ options: { ...options, kill: 1 } })).broken).toEqual(['relays killed: 0 instead of 1'])
    expect(judge(evidence({ options: { ...options, lostAcks: 3 } })).broken).toEqual([
      'acknowledgements lost on purpose: 0 instead of 3',
    ])
  })
})
