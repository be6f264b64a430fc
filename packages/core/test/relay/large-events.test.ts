import { describe, expect, it } from 'vitest'
import { gate } from '../support/gate.ts'
import { relayStand } from '../support/relay-stand.ts'

const limits = { maxInFlightBytes: 20_000, maxRunBytes: 20_000 }

describe.each([
  ['larger than all bytes that may be in flight', 100_000, 1],
  ['nearly as large as all bytes that may be in flight', 19_000, 2],
])('an event %s', (_, size, atOnce) => {
  it('goes out beside steady traffic of others, few such events at a time', async () => {
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
      ...Array.from({ length: 5 }, (_, n) => ({ key: `huge-${String(n)}`, payload: Buffer.alloc(size, 'x') })),
    )
    await stand.signal(() => stand.events.filter(({ key }) => key?.startsWith('huge')).length === 5)
    const then = small
    await stand.signal(() => small > then + 50)
    stop = true
    await Promise.all(writers)
    await relay.drain()
    expect(most).toBeLessThanOrEqual(atOnce)
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
    await stand.enqueue({ key: 'huge', payload: Buffer.alloc(size, 'x') })
    await using relay = stand.relay(limits)
    await relay.start()
    await entered.opened
    await stand.enqueue({ key: 'small', payload: 'small' })
    expect(await stand.deliveries(1)).toEqual(['small'])
    release.open()
    await stand.deliveries(2)
  })
})

describe('a key for which there is no room', () => {
  it.each([
    ['as a newcomer', []],
    ['as one that goes on', [{ key: 'second', payload: 'first of it' }]],
  ])('waits for it %s, without the relay asking again and again', async (_, before) => {
    const entered = gate()
    const release = gate()
    await using stand = await relayStand(async ({ key }) => {
      if (key !== 'huge') return undefined
      entered.open()
      await release.opened
      return undefined
    })
    const large = Buffer.alloc(100_000, 'x')
    await using relay = stand.relay({ ...limits, maxRun: 1, pollMinMs: 200 })
    await stand.enqueue({ key: 'huge', payload: large })
    await relay.start()
    await entered.opened
    await stand.enqueue(...before, { key: 'second', payload: large })
    await stand.deliveries(before.length)
    const finds = (): number => stand.signals.filter(({ kind }) => kind === 'found').length
    const [from, at] = [finds(), performance.now()]
    await stand.signal(() => finds() >= from + 10)
    // Ten finds of a relay that waits take well over a second, of one that asks at once a few ms.
    expect(performance.now() - at).toBeGreaterThan(500)
    release.open()
    await relay.drain()
    expect(await stand.states()).toEqual({ published: before.length + 2 })
  })
})
