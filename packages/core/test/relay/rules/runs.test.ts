import { describe, expect, it } from 'vitest'
import { gate } from '../../support/gate.ts'
import { pause } from '../../support/pause.ts'
import { type Answer, type RelayStand, relayStand } from '../../support/relay-stand.ts'

// How far a run reaches, and what becomes of the events that it leaves in line.

/** Nothing is swept by itself: what a find does not bring is not found. */
const unswept = { sweepIntervalMs: 3_600_000 }

/** The broker rejects the first try of one event, and its retry is an hour away. */
const rejectingFirst =
  (text: string): Answer =>
  ({ payload }, tries) =>
    tries === 1 && Buffer.from(payload ?? []).toString() === text
      ? { kind: 'rejected', cause: new Error('not now'), retryAfterMs: 3_600_000 }
      : undefined

const makeDue = ({ pool }: RelayStand): Promise<unknown> =>
  pool.query('update outbox.events set available_at = now() where available_at is not null')

/** Resolves with the next idle signal: what was committed before this call has been looked at. */
async function idleAgain(stand: RelayStand): Promise<void> {
  const from = stand.signals.length
  await stand.signal((signal) => signal.kind === 'idle' && stand.signals.indexOf(signal) >= from)
}

describe('an event', () => {
  it('stays behind an event that waits for its retry, although only it arrived', async () => {
    await using stand = await relayStand(rejectingFirst('1'))
    await using relay = stand.relay(unswept)
    await relay.start()
    await stand.enqueue({ payload: '1' })
    await stand.signal((signal) => signal.kind === 'settled' && signal.counted === 1)
    await idleAgain(stand)
    await stand.enqueue({ payload: '2' })
    await stand.signal((signal) => signal.kind === 'found' && signal.lanes > 0)
    await idleAgain(stand)
    expect(stand.delivered).toEqual([])
    await makeDue(stand)
    expect(await stand.deliveries(2)).toEqual(['1', '2'])
  })

  it('without room goes out when there is some again', async () => {
    const answered = gate()
    await using stand = await relayStand(async ({ key }) => {
      if (key === 'a') await answered.opened
      return undefined
    })
    await using relay = stand.relay({ ...unswept, maxInFlight: 1 })
    await relay.start()
    await idleAgain(stand)
    // One answer brings both, and the first takes all the room.
    await stand.enqueue({ key: 'a', payload: 'a' }, { key: 'b', payload: 'b' })
    await stand.signal((signal) => signal.kind === 'found' && signal.lanes === 2)
    answered.open()
    await stand.deliveries(2)
    await relay.drain()
    expect(await stand.states()).toEqual({ published: 2 })
  })
})

describe('a run', () => {
  it('ends at its first failure, although more of it was read', async () => {
    await using stand = await relayStand(rejectingFirst('2'))
    await using relay = stand.relay({ ...unswept, maxRun: 2 })
    await relay.start()
    await idleAgain(stand)
    // Read as one run and published by twos.
    await stand.enqueue(...['1', '2', '3', '4', '5'].map((payload) => ({ payload })))
    await stand.signal((signal) => signal.kind === 'settled' && signal.counted === 1)
    await idleAgain(stand)
    expect(stand.delivered).toEqual(['1'])
    await makeDue(stand)
    expect(await stand.deliveries(5)).toEqual(['1', '2', '3', '4', '5'])
  })

  it('lets its key go on when the event that was rejected is gone by then', async () => {
    const publishing = pause()
    const reject = rejectingFirst('1')
    await using stand = await relayStand(async (event, tries) => {
      const answer = await reject(event, tries)
      if (answer !== undefined) await publishing.stop()
      return answer
    })
    await using relay = stand.relay(unswept)
    await relay.start()
    await idleAgain(stand)
    await stand.enqueue({ payload: '1' }, { payload: '2' })
    await publishing.reached
    await stand.pool.query('delete from outbox.events where id = 1')
    publishing.goOn()
    expect(await stand.deliveries(1)).toEqual(['2'])
  })
})
