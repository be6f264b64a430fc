import { exampleEvent as event } from '@inorder/conformance'
import { describe, expect, it } from 'vitest'
import { decodeMessage, groupOf } from '../src/index.ts'
import { type Binary, type Entry, entryOf, type Format } from '../src/record.ts'

function entry(part: Parameters<typeof event>[0], format: Format = 'attributes', binary: Binary = 'base64'): Entry {
  const made = entryOf(event(part), format, binary, false)
  if ('reason' in made) throw new Error(made.reason)
  return made
}

function readBack({ body, attributes }: Entry): ReturnType<typeof decodeMessage> {
  const given = Object.entries(attributes).map(([name, value]) => [name, { StringValue: value }] as const)
  return decodeMessage({ Body: body, MessageAttributes: Object.fromEntries(given) })
}

describe('the message group', () => {
  it('is the topic and the key where SQS takes them', () => {
    expect(groupOf(event({ topic: 'orders', key: 'order:42' }))).toBe('orders/order:42')
  })

  it('is one that SQS takes for any topic and key, and never that of another key', () => {
    const topics = ['a', 'a/b', '~a', 'ä', 'a b', 'x'.repeat(200)]
    const keys = ['', 'b', 'b/c', '/', '~', 'é', '🔑', ' ', 'x'.repeat(128), 'x'.repeat(1024), '\u0001', 'b c']
    const groups = topics.flatMap((topic) => keys.map((key) => groupOf(event({ topic, key }))))
    expect(new Set(groups).size).toBe(topics.length * keys.length)
    for (const group of groups) expect(group).toMatch(/^[\x21-\x7e]{1,128}$/)
  })

  it('is one of its own for an event without a key', () => {
    expect(groupOf(event({ key: null }))).not.toBe(groupOf(event({ key: null })))
  })
})

describe('the deduplication id', () => {
  it('is the event id, and another one after each requeue', () => {
    const eventId = '0193a0e2-0000-7000-8000-000000000001'
    expect(entry({ eventId }).dedupeId).toBe(eventId)
    expect(entry({ eventId, attempt: 5 }).dedupeId).toBe(eventId)
    expect(entry({ eventId, requeues: 2 }).dedupeId).toBe(`${eventId}.r2`)
  })
})

describe('the attributes', () => {
  const many = Object.fromEntries(Array.from({ length: 40 }, (_, number) => [`header-${number}`, `value ${number}`]))

  it.each([
    ['none', {}],
    ['one', { traceparent: '00-1-2-01' }],
    ['forty', many],
    ['an empty value', { empty: '' }],
    ['a name that SQS refuses', { 'name with spaces': 'x', 'aws.reserved': 'y', '.dot': 'z', 'two..dots': 'w' }],
  ])('are at most ten, and none of the headers is lost: %s', (_, headers) => {
    for (const format of ['attributes', 'structured'] as const) {
      const made = entry({ headers, key: '' }, format)
      expect(Object.keys(made.attributes).length).toBeLessThanOrEqual(10)
      for (const [name, value] of Object.entries(made.attributes)) {
        expect(name).toMatch(/^[\w.-]{1,256}$/)
        expect(value).not.toBe('')
      }
      expect(readBack(made)).toMatchObject({ headers, key: '', topic: 'orders' })
    }
  })

  it('count towards the size with name, type and value', () => {
    const [small, large] = [entry({}), entry({ headers: { abc: 'é'.repeat(10) } })]
    expect(large.bytes - small.bytes).toBe(3 + 'String'.length + 20)
  })
})

describe('the body', () => {
  const payloads: [string, Buffer | null][] = [
    ['text', Buffer.from('{"emoji":"🔑"}')],
    ['all bytes', Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))],
    ['a control character', Buffer.from('a\u0001b')],
    ['U+FFFE', Buffer.from('\ufffe')],
    ['nothing', Buffer.alloc(0)],
    ['a tombstone', null],
  ]

  it.each(payloads)('carries %s in both forms when base64 is allowed', (_, payload) => {
    for (const format of ['attributes', 'structured'] as const) {
      const made = entry({ payload }, format)
      expect(made.body).not.toBe('')
      // eslint-disable-next-line no-control-regex -- what SQS refuses
      expect(made.body).not.toMatch(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/)
      expect(readBack(made).payload).toEqual(payload)
    }
  })

  it.each([
    ['a\u0001b', 'the character U+0001 at position 1'],
    ['ok \uffff', 'the character U+FFFF at position 3'],
  ])('is refused with the position of what SQS does not take: %j', (text, words) => {
    const made = entryOf(event({ payload: Buffer.from(text) }), 'attributes', 'refuse', false)
    expect(made).toMatchObject({ reason: expect.stringContaining(words) as string })
  })

  it('is refused when it is empty, null or no UTF-8, and the way out is named', () => {
    for (const payload of [Buffer.alloc(0), null, Buffer.from([0x61, 0xff])]) {
      const made = entryOf(event({ payload }), 'attributes', 'refuse', false)
      expect(made).toMatchObject({ reason: expect.stringContaining("binary: 'base64'") as string })
    }
    expect(entryOf(event({ payload: Buffer.from([0x61, 0xff]) }), 'attributes', 'refuse', false)).toMatchObject({
      reason: expect.stringContaining('from byte 1 on') as string,
    })
  })

  it('in a structured form has no character that SQS refuses, wherever it stands', () => {
    const made = entry({ headers: { odd: 'x\uffff\u0002' } }, 'structured')
    // eslint-disable-next-line no-control-regex -- what SQS refuses
    expect(made.body).not.toMatch(/[\u0000-\u001f\ufffe\uffff]/)
    expect(readBack(made).headers).toEqual({ odd: 'x\uffff\u0002' })
  })
})
