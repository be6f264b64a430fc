import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Failure } from '../../src/contract/publisher.ts'
import { type Decision, decideRun, type Judgement } from '../../src/relay/settle.ts'
import type { EventRow } from '../../src/storage/event-row.ts'

const policy = { maxAttempts: 10, backoff: { baseMs: 1000, capMs: 60_000 }, exhausted: 'failed' } as const
const judgement: Judgement = { policy, random: () => 1, before: undefined, acknowledgedNow: 0, longestPauseMs: 60_000 }

function row(id: number, attempts = 0): EventRow {
  return {
    id: String(id),
    eventId: `event-${String(id)}`,
    topic: 'orders',
    key: 'a',
    type: null,
    contentType: 'application/json',
    headers: '{}',
    attempts,
    requeues: 2,
    createdAtMs: 0,
    readyAtMs: 0,
    size: 2,
    payload: Buffer.from('{}'),
  }
}

const run = [row(4), row(7), row(9)]
const failure = (kind: Failure['kind'], more: Partial<Failure> = {}): Failure => ({
  kind,
  cause: new Error('no'),
  ...more,
})
const stop = (acknowledged: number, failed: Failure, more: Partial<Judgement> = {}, rows = run): Decision =>
  decideRun(rows, { acknowledged, failure: failed }, { ...judgement, ...more })
const ids = ({ entries }: Decision): string[] => entries.map(({ id }) => id)

describe('what is written for a run', () => {
  it('that was acknowledged whole: every event, and the lane goes on behind it', () => {
    const decision = decideRun(run, { acknowledged: 3 }, judgement)
    expect(ids(decision)).toEqual(['4', '7', '9'])
    expect(decision.entries.every(({ failure: failed }) => failed === undefined)).toBe(true)
    expect(decision).toEqual({ entries: decision.entries, next: '10' })
  })

  it('that the relay itself stopped: what was acknowledged, and the lane goes on at the rest', () => {
    const decision = decideRun(run, { acknowledged: 1 }, judgement)
    expect(decision).toMatchObject({ next: '7' })
    expect(ids(decision)).toEqual(['4'])
    expect(decideRun(run, { acknowledged: 0 }, judgement)).toEqual({ entries: [], next: '4' })
  })

  it('never names an event behind the one that stopped, whatever happened', () => {
    const outcome = fc.record({
      acknowledged: fc.integer({ min: 0, max: 2 }),
      kind: fc.constantFrom<Failure['kind']>('rejected', 'permanent', 'transient', 'unavailable', 'unknown'),
    })
    fc.assert(
      fc.property(outcome, fc.integer({ min: 0, max: 12 }), ({ acknowledged, kind }, attempts) => {
        const rows = [4, 7, 9].map((id) => row(id, attempts))
        const decision = stop(acknowledged, failure(kind), {}, rows)
        expect(decision.next).toBe(rows[acknowledged]?.id)
        expect(ids(decision).slice(0, acknowledged)).toEqual(['4', '7', '9'].slice(0, acknowledged))
        expect(decision.entries.length - acknowledged).toBeLessThanOrEqual(1)
        expect(decision.entries.slice(0, acknowledged).every(({ failure: failed }) => failed === undefined)).toBe(true)
      }),
    )
  })
})

describe('an answer about the message itself', () => {
  it('spends an attempt and waits', () => {
    expect(stop(1, failure('rejected'))).toEqual({
      entries: [
        { id: '4', eventId: 'event-4', attempts: 0, requeues: 2 },
        {
          id: '7',
          eventId: 'event-7',
          attempts: 0,
          requeues: 2,
          failure: { outcome: 'rejected', error: 'Error: no', retryInMs: 1000 },
        },
      ],
      next: '7',
    })
  })

  it('waits as long as the broker asked', () => {
    expect(stop(0, failure('rejected', { retryAfterMs: 7 })).entries[0]?.failure).toMatchObject({ retryInMs: 7 })
    expect(stop(0, failure('rejected', { retryAfterMs: 0 })).entries[0]?.failure).toMatchObject({ retryInMs: 0 })
  })

  it('ends the event with its last attempt, and not before', () => {
    const ended = (attempts: number, maxAttempts: number): unknown =>
      stop(0, failure('rejected'), { policy: { ...policy, maxAttempts } }, [row(4, attempts)]).entries[0]?.failure?.end
    expect([ended(8, 10), ended(9, 10), ended(10, 10)]).toEqual([undefined, 'failed', 'failed'])
    expect(ended(0, 1)).toBe('failed')
    expect(ended(2 ** 31 - 1, Infinity)).toBeUndefined()
  })

  it('holds the lane instead where that is the policy, and says whose last attempt it was', () => {
    const decision = stop(1, failure('rejected'), { policy: { ...policy, maxAttempts: 1, exhausted: 'held' } })
    expect(decision.entries[1]?.failure?.end).toBe('held')
    expect(decision.ended?.row.id).toBe('7')
  })

  it('ends the event at once when it will never be accepted', () => {
    const decision = stop(0, failure('permanent'))
    expect(decision.entries[0]?.failure).toMatchObject({ outcome: 'permanent', end: 'failed' })
    expect(decision.ended?.row.id).toBe('4')
  })
})

describe('an outage', () => {
  it('spends nothing and writes nothing for the event that met it', () => {
    expect(stop(0, failure('unavailable'), {}, [row(4, 9)])).toEqual({ entries: [], next: '4' })
    expect(ids(stop(2, failure('unavailable')))).toEqual(['4', '7'])
  })
})

describe('a transient failure', () => {
  const remembered = { eventId: 'event-4', tries: 3, acknowledgedThen: 50 }

  it('is never counted, whatever the destination acknowledges meanwhile and however many attempts are spent', () => {
    expect(stop(0, failure('transient'), { before: remembered, acknowledgedNow: 51 }, [row(4, 9)])).toEqual({
      entries: [],
      next: '4',
      pauseMs: 8000,
      unknown: { eventId: 'event-4', tries: 4, acknowledgedThen: 51 },
    })
  })

  it('keeps what was acknowledged in front of it', () => {
    const decision = stop(1, failure('transient'))
    expect(ids(decision)).toEqual(['4'])
    expect(decision).toMatchObject({ next: '7', pauseMs: 1000 })
  })

  it('waits as long as it asked, or longer each time up to the cap', () => {
    const pause = (tries: number, more: Partial<Failure> = {}): number | undefined =>
      stop(0, failure('transient', more), { before: { ...remembered, tries } }).pauseMs
    expect([pause(0), pause(1), pause(2), pause(40)]).toEqual([1000, 2000, 4000, 60_000])
    expect(pause(40, { retryAfterMs: 7 })).toBe(7)
  })
})

describe('an unknown outcome', () => {
  const remembered = { eventId: 'event-4', tries: 3, acknowledgedThen: 50 }

  it('is not counted the first time, because it may be an outage; the lane waits in memory', () => {
    expect(stop(0, failure('unknown'), { acknowledgedNow: 7 })).toEqual({
      entries: [],
      next: '4',
      pauseMs: 1000,
      unknown: { eventId: 'event-4', tries: 1, acknowledgedThen: 7 },
    })
  })

  it('is not counted while the destination acknowledges nobody else, and waits longer each time', () => {
    expect(stop(0, failure('unknown'), { before: remembered, acknowledgedNow: 50 })).toEqual({
      entries: [],
      next: '4',
      pauseMs: 8000,
      unknown: { eventId: 'event-4', tries: 4, acknowledgedThen: 50 },
    })
  })

  it('is counted once the destination has acknowledged somebody else since', () => {
    const decision = stop(0, failure('unknown'), { before: remembered, acknowledgedNow: 51 })
    expect(decision.entries[0]?.failure).toMatchObject({ outcome: 'unknown', retryInMs: 1000 })
    expect(decision.unknown).toEqual({ ...remembered, acknowledgedThen: 51 })
    expect(decision.pauseMs).toBeUndefined()
  })

  it('ends the event when it is counted for the last time', () => {
    const decision = stop(0, failure('unknown'), { before: remembered, acknowledgedNow: 51 }, [row(4, 9)])
    expect(decision.entries[0]?.failure?.end).toBe('failed')
  })

  it('of another event than the remembered one begins anew', () => {
    expect(stop(1, failure('unknown'), { before: remembered, acknowledgedNow: 99 })).toMatchObject({
      next: '7',
      unknown: { eventId: 'event-7', tries: 1, acknowledgedThen: 99 },
    })
  })

  it('is tried again before the broker forgets the event id', () => {
    expect(stop(0, failure('unknown'), { before: remembered, acknowledgedNow: 50, longestPauseMs: 2000 }).pauseMs).toBe(
      2000,
    )
  })
})
