import { exampleEvent as event } from '@inorder/conformance'
import { expect, test } from 'vitest'
import { appendArguments, decodeEntry, entryFields, entryValues, streamOf } from '../src/record.ts'

test('a value is a string, a Buffer or absent, whatever the event holds', () => {
  const values = entryValues(event({ key: null, type: null, payload: Uint8Array.of(0, 255), headers: { a: '"1"' } }))
  expect(values).toHaveLength(entryFields.length)
  for (const value of values) expect(value === null || typeof value === 'string' || Buffer.isBuffer(value)).toBe(true)
})

test('a payload is not copied', () => {
  const bytes = new Uint8Array(new ArrayBuffer(16), 4, 8)
  const payload = entryValues(event({ payload: bytes })).at(-1)
  bytes[0] = 7
  expect(payload).toEqual(Buffer.of(7, 0, 0, 0, 0, 0, 0, 0))
})

test('an entry read back is the event', () => {
  const events = [
    event({ headers: { __proto__: 'x', traceparent: '00-1-2-01', Ä: 'ö' }, attempt: 3, requeues: 1 }),
    event({ key: '', type: null, payload: Buffer.alloc(0) }),
    event({ key: null, payload: null }),
  ]
  for (const one of events) {
    const values = entryValues(one)
    const fields = entryFields.flatMap((name, index) => {
      const value = values[index]
      return value === null || value === undefined ? [] : [Buffer.from(name), Buffer.from(value)]
    })
    expect(decodeEntry(fields)).toEqual(one)
  }
})

test('an entry of somebody else is refused with the name of the field that it lacks', () => {
  expect(() => decodeEntry([Buffer.from('field'), Buffer.from('value')])).toThrow(/outbox-event-id/)
})

test('trimming is off unless asked for', () => {
  expect(appendArguments([], undefined)).toEqual(['', '', ''])
  expect(appendArguments([], { maxLength: 10 })).toEqual(['MAXLEN', '~', '10'])
  expect(appendArguments([], { maxLength: 10, approximate: false })).toEqual(['MAXLEN', '=', '10'])
  expect(appendArguments([], { olderThanMs: 1000 })).toEqual(['MINID', '~', '1000'])
})

test('the shard of a key is fixed for ever', () => {
  // CRC-32 of the UTF-8 key, as in zlib: consumers compute it in other languages.
  expect(streamOf(event({ key: 'customer-9' }), 'orders', 1)).toBe('orders')
  expect(streamOf(event({ key: 'customer-9' }), 'orders', 8)).toBe('{orders:7}')
  expect(streamOf(event({ key: '123456789' }), 'orders', 16_384)).toBe(`{orders:${0xcbf43926 % 16_384}}`)
  expect(streamOf(event({ key: '' }), 'orders', 8)).toBe('{orders:0}')
})
