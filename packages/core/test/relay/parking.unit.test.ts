import { describe, expect, it } from 'vitest'
import { createParking } from '../../src/relay/parking.ts'

describe('slots that wait for a destination', () => {
  it('are remembered once each, by destination, and given back once', () => {
    const parking = createParking()
    for (const slot of [1, 2, 1]) parking.park('orders', slot)
    parking.park('bills', 1)
    expect(parking.destinations()).toEqual(['orders', 'bills'])
    expect(parking.release('orders')).toEqual([1, 2])
    expect(parking.release('orders')).toEqual([])
    expect(parking.destinations()).toEqual(['bills'])
  })

  it('are taken one by one for probes, another one each time', () => {
    const parking = createParking()
    for (const slot of [1, 2, 3]) parking.park('orders', slot)
    expect(parking.takeOne('orders')).toBe(1)
    // A probe that found the destination still down is parked again, behind the others.
    parking.park('orders', 1)
    expect([
      parking.takeOne('orders'),
      parking.takeOne('orders'),
      parking.takeOne('orders'),
      parking.takeOne('orders'),
    ]).toEqual([2, 3, 1, undefined])
    expect(parking.destinations()).toEqual([])
  })

  it('are forgotten when the slot is lost', () => {
    const parking = createParking()
    parking.park('orders', 1)
    parking.park('bills', 1)
    parking.park('bills', 2)
    parking.forget(1)
    expect(parking.destinations()).toEqual(['bills'])
    expect(parking.release('bills')).toEqual([2])
  })
})
