import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import type { OutboxEvent } from '../../../src/contract/event.ts'
import { aroundStatements, purposeOf } from '../../support/around-statements.ts'
import { gate } from '../../support/gate.ts'
import { insert } from '../../support/outbox-database.ts'
import { pause } from '../../support/pause.ts'
import { type RelayStand, relayStand } from '../../support/relay-stand.ts'

// A writer takes a low id and commits late: after a higher id of its key was read, and before a third event of the key is
// inserted. So the low id has to be delivered before the third one, whatever the relay is doing meanwhile.

/** Nothing is swept by itself: what a find does not bring is not found. */
const unswept = { sweepIntervalMs: 3_600_000 }

const text = ({ payload }: Pick<OutboxEvent, 'payload'>): string => Buffer.from(payload ?? []).toString()

async function beginLateCommit(pool: pg.Pool): Promise<() => Promise<void>> {
  const writer = await pool.connect()
  await writer.query('begin')
  await insert(writer, 'k', 'low id, late commit')
  return async () => {
    await writer.query('commit')
    writer.release()
  }
}

const ofTheKey = ({ events }: RelayStand): string[] => events.filter(({ key }) => key === 'k').map(text)
const inOrder = ['high id', 'low id, late commit', 'third']

/** The first find that names a lane to go on with waits for `stop` before it reaches the server. */
async function standWithNamingFind(stop: () => Promise<void>, broker: (event: OutboxEvent) => Promise<void>) {
  let named = false
  return relayStand(
    async (event) => {
      await broker(event)
      return undefined
    },
    {},
    (client) =>
      aroundStatements(client, async (statement, run) => {
        const names = purposeOf(statement) === 'find' && (statement.values[5] as string[]).length > 0
        if (names && !named) {
          named = true
          await stop()
        }
        return run()
      }),
  )
}

describe('a low id that commits late', () => {
  it("is found after the lane's higher id was read, while that one is being published", async () => {
    const publishing = pause()
    await using stand = await relayStand(async (event) => {
      if (text(event) === 'high id') await publishing.stop()
      return undefined
    })
    const commit = await beginLateCommit(stand.pool)
    await using relay = stand.relay(unswept)
    await relay.start()
    await stand.enqueue({ payload: 'high id' })
    await publishing.reached
    await commit()
    await stand.enqueue({ payload: 'third' })
    // The lane is in flight, and both events have turned up.
    const found = stand.signals.length
    const looked = (from: number): Promise<unknown> =>
      stand.signal((signal) => signal.kind === 'found' && stand.signals.indexOf(signal) >= from)
    await looked(found)
    await looked(stand.signals.length)
    publishing.goOn()
    expect(await stand.deliveries(3)).toEqual(inOrder)
  })

  it('is found by the very find that goes on with its lane', async () => {
    const naming = pause()
    await using stand = await standWithNamingFind(naming.stop, async () => undefined)
    const commit = await beginLateCommit(stand.pool)
    await using relay = stand.relay(unswept)
    await relay.start()
    await stand.enqueue({ payload: 'high id' })
    await naming.reached
    await commit()
    await stand.enqueue({ payload: 'third' })
    naming.goOn()
    expect(await stand.deliveries(3)).toEqual(inOrder)
  })
})

describe('a find that reaches its limit before a low id that committed late', () => {
  const limited = { ...unswept, findLimit: 3 }

  /** The find that goes on with the lane of `high id` sees three other events, and neither of the two that follow. */
  async function scene(broker: (event: OutboxEvent) => Promise<void>): Promise<{
    readonly stand: RelayStand
    readonly start: (options: Parameters<RelayStand['relay']>[0]) => Promise<void>
  }> {
    const naming = pause()
    const stand = await standWithNamingFind(naming.stop, broker)
    return {
      stand,
      async start(options) {
        const commit = await beginLateCommit(stand.pool)
        const relay = stand.relay({ ...limited, ...options })
        await relay.start()
        await stand.enqueue({ payload: 'high id' })
        await naming.reached
        for (const topic of ['a', 'b', 'c']) await stand.enqueue({ topic, key: 'other', payload: 'other' })
        await commit()
        await stand.enqueue({ payload: 'third' })
        naming.goOn()
        await stand.signal((signal) => signal.kind === 'found' && signal.hit)
      },
    }
  }

  it('reads the lanes it goes on with from their start', async () => {
    const { stand, start } = await scene(async () => undefined)
    await using _ = stand
    await start({})
    await stand.deliveries(6)
    expect(ofTheKey(stand)).toEqual(inOrder)
  })

  it('reads a lane from its start later, when there is no room for it now', async () => {
    const others = gate()
    const { stand, start } = await scene(async ({ topic }) => {
      if (topic !== 'orders') await others.opened
    })
    await using _ = stand
    await start({ maxInFlight: 3 })
    others.open()
    await stand.deliveries(6)
    expect(ofTheKey(stand)).toEqual(inOrder)
  })

  it('reads a lane that is in flight from its start later', async () => {
    const [publishing, finding, others] = [pause(), pause(), gate()]
    let holdsNext = false
    await using stand = await relayStand(
      async (event) => {
        if (text(event) === 'high id') await publishing.stop()
        if (event.topic !== 'orders') await others.opened
        return undefined
      },
      {},
      (client) =>
        aroundStatements(client, async (statement, run) => {
          if (holdsNext && purposeOf(statement) === 'find') {
            holdsNext = false
            await finding.stop()
          }
          return run()
        }),
    )
    const commit = await beginLateCommit(stand.pool)
    // With the lane and the three others in flight there is no room to sweep: a find goes on with the lane before that.
    await using relay = stand.relay({ ...limited, maxInFlight: 4 })
    await relay.start()
    await stand.enqueue({ payload: 'high id' })
    await publishing.reached
    holdsNext = true
    await finding.reached
    for (const topic of ['a', 'b', 'c']) await stand.enqueue({ topic, key: 'other', payload: 'other' })
    await commit()
    await stand.enqueue({ payload: 'third' })
    finding.goOn()
    await stand.signal((signal) => signal.kind === 'found' && signal.hit)
    publishing.goOn()
    await stand.signal(() => ofTheKey(stand).length === 3)
    others.open()
    expect(ofTheKey(stand)).toEqual(inOrder)
  })

  it('leaves no event behind', async () => {
    await using stand = await relayStand()
    await using relay = stand.relay(limited)
    await relay.start()
    await stand.signal(({ kind }) => kind === 'idle')
    await stand.enqueue(...Array.from({ length: 20 }, (_, n) => ({ key: `k${n}`, payload: String(n) })))
    await stand.deliveries(20)
  })
})
