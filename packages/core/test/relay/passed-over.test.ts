import { describe, expect, it } from 'vitest'
import { gate } from '../support/gate.ts'
import { relayStand } from '../support/relay-stand.ts'

/** Nothing is swept by itself: what nobody remembers is not found. */
const unswept = { sweepIntervalMs: 3_600_000 }

describe('what arrives during an outage', () => {
  it('goes out after it, and no sweep is needed for that', async () => {
    let down = true
    await using stand = await relayStand(() =>
      down ? { kind: 'unavailable', cause: new Error('refused') } : undefined,
    )
    await using relay = stand.relay({ ...unswept, breakerMinMs: 5, breakerMaxMs: 20 })
    await relay.start()
    await stand.enqueue({ key: 'a', payload: 'a' })
    await stand.signal((signal) => signal.kind === 'breaker' && signal.open)
    const later = ['b', 'c', 'd', 'e'].map((key) => ({ key, payload: key }))
    await stand.enqueue(...later)
    const from = stand.signals.length
    await stand.signal((signal) => signal.kind === 'found' && stand.signals.indexOf(signal) > from + 1)
    down = false
    await stand.signal((signal) => signal.kind === 'breaker' && !signal.open)
    await relay.drain()
    expect([...stand.delivered].sort()).toEqual(['a', 'b', 'c', 'd', 'e'])
  })
})

describe('a relay that is told to stop', () => {
  it('starts nothing more while it waits for what is in flight', async () => {
    const [entered, leave] = [gate(), gate()]
    await using stand = await relayStand(async ({ key }) => {
      if (key !== 'slow') return undefined
      entered.open()
      await leave.opened
      return undefined
    })
    await stand.enqueue({ key: 'slow', payload: 'in flight' })
    const relay = stand.relay(unswept)
    await relay.start()
    await entered.opened
    const stopped = relay.stop()
    await stand.enqueue({ key: 'other', payload: 'too late' })
    const finds = (): number => stand.signals.filter(({ kind }) => kind === 'found').length
    const seen = finds()
    await stand.signal(() => finds() > seen + 2)
    leave.open()
    await stopped
    expect(stand.delivered).toEqual(['in flight'])
    expect(await stand.states()).toEqual({ published: 1, pending: 1 })
  })
})
