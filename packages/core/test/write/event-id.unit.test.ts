import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isUuid } from '../../src/contract/uuid.ts'
import { newEventId } from '../../src/write/event-id.ts'

describe('a new event id', () => {
  it('is a UUID of version 7 that begins with its millisecond', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 48 - 1 }), (now) => {
        const eventId = newEventId(now)
        expect(eventId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
        expect(Number.parseInt(eventId.replaceAll('-', '').slice(0, 12), 16)).toBe(now)
      }),
    )
  })

  it('sorts as text by the time it was made', () => {
    const times = [0, 1, 255, 256, 65_535, 65_536, 2 ** 40, 2 ** 48 - 1]
    const ids = times.map((time) => newEventId(time))
    expect(ids).toEqual(ids.toSorted())
  })

  it('differs from every other of its millisecond', () => {
    expect(new Set(Array.from({ length: 10_000 }, () => newEventId(1))).size).toBe(10_000)
  })
})

describe('a UUID', () => {
  it('is recognised in either case and of any version', () => {
    expect(isUuid('00000000-0000-0000-0000-000000000000')).toBe(true)
    expect(isUuid('F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6')).toBe(true)
    for (const uuid of fc.sample(fc.uuid(), 100)) expect(isUuid(uuid)).toBe(true)
  })

  it.each([
    '',
    'ev-1',
    'f81d4fae7dec11d0a76500a0c91e6bf6',
    '{f81d4fae-7dec-11d0-a765-00a0c91e6bf6}',
    ' f81d4fae-7dec-11d0-a765-00a0c91e6bf6',
    'f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n',
  ])('is nothing else: %j', (text) => {
    expect(isUuid(text)).toBe(false)
  })
})
