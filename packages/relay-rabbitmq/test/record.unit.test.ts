import { exampleEvent as event } from '@inorder/conformance'
import type { MessageProperties } from 'amqplib'
import { describe, expect, it } from 'vitest'
import { decodeMessage, shardOf } from '../src/index.ts'
import { bodyOf, propertiesOf, refusalOf } from '../src/record.ts'

const maxEventBytes = 1000

describe('the message of an event', () => {
  it('is persistent and mandatory, and has the event id as its id', () => {
    const one = event()
    expect(propertiesOf(one, true)).toMatchObject({ persistent: true, mandatory: true, messageId: one.eventId })
  })

  it.each([
    ['a payload', { payload: Buffer.from([0, 255]) }],
    ['an empty payload', { payload: Buffer.alloc(0) }],
    ['a tombstone', { payload: null }],
    ['the empty key', { key: '' }],
    ['no key and no type', { key: null, type: null }],
  ])('is read back as it was: %s', (_, part) => {
    const one = event({ headers: { traceparent: '00-1-2-01' }, ...part })
    const properties = propertiesOf(one, true) as MessageProperties
    const { payload, ...rest } = decodeMessage({ content: bodyOf(one), properties })
    expect(payload).toEqual(one.payload)
    expect(one).toMatchObject(rest)
  })
})

describe('what RabbitMQ would close a channel for', () => {
  it.each([
    ['a payload that is too large', { payload: Buffer.alloc(maxEventBytes + 1) }, 'orders', 'maxEventBytes is 1000'],
    ['a routing key of 256 bytes', {}, 'é'.repeat(128), 'routing key has 256 bytes'],
    ['a type of 256 bytes', { type: 'x'.repeat(256) }, 'orders', 'type has 256 bytes'],
    ['a content type of 256 bytes', { contentType: 'x'.repeat(256) }, 'orders', 'content type has 256 bytes'],
    ['a header name of 256 bytes', { headers: { ['x'.repeat(256)]: '' } }, 'orders', 'RabbitMQ takes 255 at most'],
    ['a header CC', { headers: { CC: 'x' } }, 'orders', 'copies to other queues'],
    ['headers of 64 KiB', { headers: { a: 'x'.repeat(65_000) } }, 'orders', 'The headers have'],
  ])('is refused before it is sent: %s', (_, part, routingKey, words) => {
    expect(refusalOf(event(part), routingKey, maxEventBytes)?.reason).toContain(words)
  })

  it.each([
    ['255 bytes of everything', { type: 'x'.repeat(255), contentType: 'x'.repeat(255) }, 'x'.repeat(255)],
    ['a long key', { key: 'x'.repeat(1024) }, 'orders'],
  ])('is not %s', (_, part, routingKey) => {
    expect(refusalOf(event(part), routingKey, maxEventBytes)).toBeUndefined()
  })
})

describe('the shard of a key', () => {
  it('is the same for all its events, and all shards are used', () => {
    expect(shardOf(event({ key: 'a' }), 8)).toBe(shardOf(event({ key: 'a' }), 8))
    const used = new Set(Array.from({ length: 200 }, (_, n) => shardOf(event({ key: `key-${n}` }), 8)))
    expect(used.size).toBe(8)
  })
})
