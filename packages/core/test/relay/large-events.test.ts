import { describe, expect, it } from 'vitest'
import { gate } from '../support/gate.ts'
import { relayStand } from '../support/relay-stand.ts'

describe('an event larger than all bytes that may be in flight', () => {
  const limits = { maxInFlightBytes: 20_000, maxRunBytes: 20_000 }

  it('goes out beside steady traffic of others, one such event at a time', async () => {
    let now = 0
    let most = 0
    let small = 0
    let stop = false
    await using stand = await relayStand(async ({ key }) => {
      if (key === null || !key.startsWith('huge')) {
        small += 1
        return undefined
      }
      now += 1
      most = Math.max(most, now)
      await new Promise((resolve) => setImmediate(resolve))
      now -= 1
      return undefined
    })
    await using relay = stand.relay(limits)
    await relay.start()
    const traffic = async (): Promise<void> => {
      for (let n = 0; !stop; n++) await stand.enqueue({ key: `small-${String(n % 50)}`, payload: 'x'.repeat(2000) })
    }
    const writers = [traffic(), traffic(), traffic()]
    await stand.signal(() => small > 100)
    await stand.enqueue(
      ...Array.from({ length: 5 }, (_, n) => ({ key: `huge-${String(n)}`, payload: Buffer.alloc(100_000, 'x') })),
    )
    await stand.signal(() => stand.events.filter(({ key }) => key?.startsWith('huge')).length === 5)
    const then = small
    await stand.signal(() => small > then + 50)
    stop = true
    await Promise.all(writers)
    await relay.drain()
    expect(most).toBe(1)
    expect(Object.keys(await stand.states())).toEqual(['published'])
  })

  it('that is slow delays no other key', async () => {
    const entered = gate()
    const release = gate()
    await using stand = await relayStand(async ({ key }) => {
      if (key !== 'huge') return undefined
      entered.open()
      await release.opened
      return undefined
    })
    await stand.enqueue({ key: 'huge', payload: Buffer.alloc(100_000, 'x') })
    await using relay = stand.relay(limits)
    await relay.start()
    await entered.opened
    await stand.enqueue({ key: 'small', payload: 'small' })
    expect(await stand.deliveries(1)).toEqual(['small'])
    release.open()
    await stand.deliveries(2)
  })
})
