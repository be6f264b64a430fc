import { describe, expect, it } from 'vitest'
import { createBreakers, wholePublisher } from '../../src/relay/breaker.ts'

const pause = { minMs: 100, maxMs: 2000 }

describe('a destination that takes nothing', () => {
  it('is left alone for its pause, and no other destination with it', () => {
    const breakers = createBreakers(pause)
    expect(breakers.admit('orders', 'a', 0)).toBe('go')
    expect(breakers.unavailable('orders', 0, 'down')).toBe(true)
    expect(breakers.unavailable('orders', 1, 'down')).toBe(false)
    expect([breakers.admit('orders', 'a', 99), breakers.admit('bills', 'b', 0)]).toEqual(['wait', 'go'])
    expect([breakers.closed('orders'), breakers.closed('bills')]).toEqual([false, true])
    expect(breakers.open()).toEqual([{ destination: 'orders', sinceMs: 0, cause: 'down' }])
  })

  it('is probed by one lane at a time', () => {
    const breakers = createBreakers(pause)
    breakers.unavailable('orders', 0, 'down')
    expect(breakers.probeAt('orders')).toBe(100)
    expect(breakers.admit('orders', 'a', 100)).toBe('probe')
    expect(breakers.admit('orders', 'b', 100)).toBe('wait')
    expect(breakers.probeAt('orders')).toBe(Infinity)
  })

  it('is probed ever more rarely, up to the longest pause', () => {
    const breakers = createBreakers(pause)
    let now = 0
    const pauses: number[] = []
    breakers.unavailable('orders', now, 'down')
    for (let probe = 0; probe < 7; probe++) {
      const at = breakers.probeAt('orders')
      pauses.push(at - now)
      now = at
      expect(breakers.admit('orders', `lane-${String(probe)}`, now)).toBe('probe')
      breakers.unavailable('orders', now, 'down')
    }
    expect(pauses).toEqual([100, 200, 400, 800, 1600, 2000, 2000])
  })

  it('is not paused for longer by answers to what was on its way when it went down', () => {
    const breakers = createBreakers(pause)
    for (const now of [0, 1, 2, 3, 50]) breakers.unavailable('orders', now, 'down')
    expect(breakers.probeAt('orders')).toBe(100)
  })

  it('waits as long as the broker asked', () => {
    const breakers = createBreakers(pause)
    breakers.unavailable('orders', 0, 'down', 5000)
    expect(breakers.probeAt('orders')).toBe(5000)
    breakers.unavailable('orders', 10, 'down', 9000)
    expect(breakers.probeAt('orders')).toBe(9010)
    breakers.unavailable('orders', 20, 'down', 1)
    expect(breakers.probeAt('orders')).toBe(9010)
  })

  it('lets another lane probe when a probe gave no answer, in case the fault is its own', () => {
    const breakers = createBreakers(pause)
    breakers.unavailable('orders', 0, 'down')
    expect(breakers.admit('orders', 'a', 100)).toBe('probe')
    breakers.probeEnded('a', 150)
    expect(breakers.probeAt('orders')).toBe(350)
    expect(breakers.admit('orders', 'a', 350)).toBe('wait')
    expect(breakers.admit('orders', 'b', 350)).toBe('probe')
  })

  it('is probed by the same lane again when there is no other', () => {
    const breakers = createBreakers(pause)
    breakers.unavailable('orders', 0, 'down')
    breakers.admit('orders', 'a', 100)
    breakers.probeEnded('a', 100)
    expect([breakers.admit('orders', 'a', 300), breakers.admit('orders', 'a', 300)]).toEqual(['wait', 'probe'])
  })

  it('is open for everybody as soon as it answers anything', () => {
    const breakers = createBreakers(pause)
    breakers.unavailable('orders', 0, 'down')
    expect(breakers.admit('orders', 'a', 100)).toBe('probe')
    expect(breakers.answered('orders')).toEqual(['orders'])
    expect(breakers.answered('orders')).toEqual([])
    expect([breakers.admit('orders', 'b', 100), breakers.closed('orders'), breakers.probeAt('orders')]).toEqual([
      'go',
      true,
      0,
    ])
    breakers.unavailable('orders', 200, 'down again')
    expect(breakers.probeAt('orders')).toBe(300)
  })

  it('is not disturbed by the end of a run that was no probe', () => {
    const breakers = createBreakers(pause)
    breakers.unavailable('orders', 0, 'down')
    breakers.probeEnded('stranger', 10)
    expect(breakers.probeAt('orders')).toBe(100)
  })
})

describe('a broker that takes nothing at all', () => {
  it('is left alone by every destination, and probed by one lane of any', () => {
    const breakers = createBreakers(pause)
    breakers.unavailable(wholePublisher, 0, 'down')
    expect([breakers.admit('orders', 'a', 50), breakers.admit('bills', 'b', 50)]).toEqual(['wait', 'wait'])
    expect(breakers.probeAt('orders')).toBe(100)
    expect(breakers.admit('orders', 'a', 100)).toBe('probe')
    expect(breakers.admit('bills', 'b', 100)).toBe('wait')
    expect(breakers.answered('orders')).toEqual([wholePublisher])
    expect(breakers.admit('bills', 'b', 100)).toBe('go')
  })

  it('keeps a destination waiting that is down by itself too', () => {
    const breakers = createBreakers(pause)
    breakers.unavailable(wholePublisher, 0, 'down')
    breakers.unavailable('orders', 0, 'down', 1000)
    expect(breakers.probeAt('orders')).toBe(1000)
    expect(breakers.admit('orders', 'a', 100)).toBe('wait')
    // The lane that had to wait for its own destination has not taken the probe of the whole.
    expect(breakers.admit('bills', 'b', 100)).toBe('probe')
  })

  it('is answered by one destination without opening another that is down by itself', () => {
    const breakers = createBreakers(pause)
    breakers.unavailable(wholePublisher, 0, 'down')
    breakers.unavailable('bills', 0, 'down')
    breakers.admit('orders', 'a', 100)
    expect(breakers.answered('orders')).toEqual([wholePublisher])
    expect([breakers.closed('orders'), breakers.closed('bills')]).toEqual([true, false])
  })
})
