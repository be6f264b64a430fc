import { describe, expect, it } from 'vitest'
import { readFound } from '../../../src/storage/find.ts'
import { aroundStatements, purposeOf } from '../../support/around-statements.ts'
import { pause } from '../../support/pause.ts'
import { relayStand } from '../../support/relay-stand.ts'

// What happens between a statement and its answer.

/** Nothing is swept by itself: what a find does not bring is not found. */
const unswept = { sweepIntervalMs: 3_600_000 }

describe('a find that was answered before a settle, and whose answer comes after it,', () => {
  it('publishes nothing again that was settled meanwhile', async () => {
    const [publishing, answering] = [pause(), pause()]
    let held = false
    await using stand = await relayStand(
      async ({ payload }) => {
        if (Buffer.from(payload ?? []).toString() === '1') await publishing.stop()
        return undefined
      },
      {},
      (client) =>
        aroundStatements(client, async (statement, run) => {
          const answer = await run()
          // The answer has both events: the first is not settled yet.
          const both = purposeOf(statement) === 'find' && readFound(answer.rows).lanes[0]?.rows.length === 2
          if (both && !held) {
            held = true
            await answering.stop()
          }
          return answer
        }),
    )
    await using relay = stand.relay(unswept)
    await relay.start()
    // Nothing is swept any more, so the lane is met by no answer before that one.
    await stand.signal(({ kind }) => kind === 'idle')
    await stand.enqueue({ payload: '1' })
    await publishing.reached
    await stand.enqueue({ payload: '2' })
    await answering.reached
    publishing.goOn()
    await stand.signal((signal) => signal.kind === 'settled' && signal.published === 1)
    answering.goOn()
    await stand.deliveries(2)
    await relay.drain()
    expect(stand.delivered).toEqual(['1', '2'])
  })
})

describe('a relay whose connection breaks under a find', () => {
  it('finds what was committed between two connections', async () => {
    let breaksNext = false
    await using stand = await relayStand(undefined, {}, (client) =>
      aroundStatements(client, async (statement, run, connection) => {
        if (!breaksNext || purposeOf(statement) !== 'find') return run()
        breaksNext = false
        await connection.close()
        await stand.enqueue({ payload: 'between' })
        throw new Error('the connection broke before the statement was sent')
      }),
    )
    await using relay = stand.relay(unswept)
    await relay.start()
    await stand.signal(({ kind }) => kind === 'idle')
    breaksNext = true
    expect(await stand.deliveries(1)).toEqual(['between'])
  })
})

describe('an outcome', () => {
  it('is written later when it never reached the server', async () => {
    let breaks = 2
    await using stand = await relayStand(undefined, {}, (client) =>
      aroundStatements(client, async (statement, run, connection) => {
        if (breaks === 0 || purposeOf(statement) !== 'acknowledge') return run()
        breaks -= 1
        await connection.close()
        throw new Error('the connection broke before the statement was sent')
      }),
    )
    await using relay = stand.relay(unswept)
    await relay.start()
    await stand.enqueue({ payload: '1' })
    await stand.deliveries(1)
    await relay.drain()
    expect(await stand.states()).toEqual({ published: 1 })
    expect(stand.delivered).toEqual(['1'])
    expect(breaks).toBe(0)
  })
})
