import { describe, expect, it } from 'vitest'
import { aroundStatements, purposeOf } from '../support/around-statements.ts'
import { gate } from '../support/gate.ts'
import { insert } from '../support/outbox-database.ts'
import { relayStand } from '../support/relay-stand.ts'

/** Nothing is swept by itself: what a find does not bring is not found. */
const unswept = { sweepIntervalMs: 3_600_000 }

describe('an answer of a find that is on its way', () => {
  it('brings nothing again that was settled meanwhile', async () => {
    const [publishing, published, asked, ask, answered, answer] = [gate(), gate(), gate(), gate(), gate(), gate()]
    let holding = false
    await using stand = await relayStand(
      async ({ payload }) => {
        if (Buffer.from(payload ?? []).toString() !== 'first') return undefined
        publishing.open()
        await published.opened
        return undefined
      },
      {},
      (client) =>
        aroundStatements(client, async (statement, run) => {
          if (!holding || purposeOf(statement) !== 'find') return run()
          holding = false
          asked.open()
          await ask.opened
          const found = await run()
          answered.open()
          await answer.opened
          return found
        }),
    )
    await using relay = stand.relay(unswept)
    await relay.start()
    await stand.enqueue({ payload: 'first' })
    await publishing.opened
    holding = true
    await asked.opened
    // The find that is held is the first to meet the second event, so it brings both.
    await stand.enqueue({ payload: 'second' })
    ask.open()
    await answered.opened
    published.open()
    await stand.signal(({ kind }) => kind === 'settled')
    answer.open()
    await stand.deliveries(2)
    await relay.drain()
    expect(stand.delivered).toEqual(['first', 'second'])
  })
})

describe('what is committed between two connections', () => {
  it('is looked for on the next connection', async () => {
    let cut = false
    await using stand = await relayStand(undefined, {}, (client) =>
      aroundStatements(client, async (statement, run, connection) => {
        if (!cut || purposeOf(statement) !== 'find') return run()
        cut = false
        await connection.close()
        await insert(stand.pool, 'k', 'meanwhile')
        throw new Error('the connection broke')
      }),
    )
    await using relay = stand.relay(unswept)
    await relay.start()
    await stand.signal(({ kind }) => kind === 'idle')
    cut = true
    await stand.signal((signal) => signal.kind === 'database' && signal.use === 'find' && signal.ok)
    const from = stand.signals.length
    await stand.signal((signal) => signal.kind === 'idle' && stand.signals.indexOf(signal) >= from)
    expect(stand.delivered).toEqual(['meanwhile'])
  })
})
