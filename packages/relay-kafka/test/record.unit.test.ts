import { exampleEvent as event } from '@inorder/conformance'
import { readWireHeaders } from '@inorder/core'
import { describe, expect, it } from 'vitest'
import { decodeRecord, murmur2, partitionOf } from '../src/index.ts'
import { recordBytes, recordOf } from '../src/record.ts'

describe('the partition of a key', () => {
  // From the tests of Kafka's own Java client.
  it.each([
    ['21', -973932308],
    ['foobar', -790332482],
    ['a-little-bit-long-string', -985981536],
    ['a-little-bit-longer-string', -1486304829],
    ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
    ['abc', 479470107],
  ])('is that of the Java client: %s', (key, hash) => {
    expect(murmur2(Buffer.from(key))).toBe(hash)
    expect(partitionOf(event({ key }), 6)).toBe((hash & 0x7fffffff) % 6)
  })

  it('is always one that exists, whatever the length of the key in bytes', () => {
    for (const key of ['', 'a', 'ab', 'é', '🔑', 'x'.repeat(1000)])
      for (const partitions of [1, 2, 7, 1000]) expect(partitionOf(event({ key }), partitions)).toBeLessThan(partitions)
  })

  it('is that of the event id without a key, so that unordered events are spread', () => {
    const found = new Set(Array.from({ length: 200 }, () => partitionOf(event({ key: null }), 6)))
    expect([...found].sort()).toEqual([0, 1, 2, 3, 4, 5])
  })
})

describe('the record of an event', () => {
  it('has null for what the event has none of, and the empty key as it is', () => {
    expect(recordOf(event({ key: null, payload: null }), 3)).toMatchObject({ key: null, value: null, partition: 3 })
    expect(recordOf(event({ key: '' }), 0)).toMatchObject({ key: '' })
  })

  it('is read back as it was', () => {
    const one = event({ key: 'schlüssel', headers: { traceparent: '00-1-2-01' }, attempt: 3, requeues: 1 })
    const { value, headers = {} } = recordOf(one, 0)
    const onTheWire = Object.entries(headers).map(([name, text]) => [name, Buffer.from(String(text))] as const)
    const {
      payload,
      headers: own,
      ...rest
    } = decodeRecord({
      value: value as Buffer,
      headers: Object.fromEntries(onTheWire),
    })
    expect(payload).toEqual(one.payload)
    expect(own).toEqual(one.headers)
    expect(one).toMatchObject(rest)
  })

  it('is never larger than it is said to be', () => {
    const one = event({ headers: { a: 'b'.repeat(300) }, payload: Buffer.alloc(5000) })
    const { headers = {} } = recordOf(one, 0)
    const parts = Object.entries(headers).flatMap(([name, value]) => [name, String(value)])
    const least = parts.reduce((sum, text) => sum + Buffer.byteLength(text), 5000 + 5)
    expect(recordBytes(one)).toBeGreaterThan(least)
    expect(recordBytes(one)).toBeLessThan(least + 300)
  })

  it('that nobody here has written is refused', () => {
    expect(() => readWireHeaders({})).toThrow(/outbox-event-id is missing/)
  })
})
