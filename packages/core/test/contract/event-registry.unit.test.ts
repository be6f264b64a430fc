import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { OutboxError } from '../../src/contract/errors.ts'
import type { OutboxEvent } from '../../src/contract/event.ts'
import { type DecodedEvent, defineEvents, type EventRegistry } from '../../src/contract/event-registry.ts'
import { shop } from '../support/shop-events.ts'

type SchemasOf<Registry> = Registry extends EventRegistry<infer Schemas> ? Schemas : never

const json = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value))

/** A schema written by hand, as any library may have it. */
const schema = (validate: (value: unknown) => unknown): never =>
  ({ '~standard': { version: 1, vendor: 'hand', validate } }) as never

async function refusal(work: Promise<unknown>): Promise<OutboxError> {
  const error: unknown = await work.catch((reason: unknown) => reason)
  if (!(error instanceof OutboxError)) throw new Error(`refused with ${String(error)}`)
  expect(error.code).toBe('EVENT_INVALID')
  return error
}

describe('decode', () => {
  it('gives the payload that the schema gives, by the type of the event', async () => {
    const event = { topic: 'orders', type: 'order.placed', payload: json({ id: 'a', secret: 1 }), other: true }
    expect(await shop.decode(event)).toEqual({ ...event, name: 'order.placed', payload: { id: 'a', total: 0 } })
  })

  it('gives it by the topic where the type is not registered, or absent', async () => {
    const payload = json({ item: 'pen', left: 3 })
    for (const event of [{ topic: 'stock' }, { topic: 'stock', type: null }, { topic: 'stock', type: 'stock.counted' }])
      expect(await shop.decode({ ...event, payload })).toMatchObject({
        name: 'stock',
        payload: { item: 'pen', left: 3 },
      })
  })

  it('takes a tombstone where the schema does, and nowhere else', async () => {
    expect(await shop.decode({ topic: 'profiles', payload: null })).toMatchObject({ name: 'profiles', payload: null })
    const error = await refusal(shop.decode({ topic: 'stock', payload: null }))
    expect(error.problems).toEqual([{ path: '/payload', message: expect.stringContaining('null') as string }])
  })

  it('refuses with the path of every issue and the id of the event', async () => {
    const eventId = 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'
    const error = await refusal(
      shop.decode({ topic: 'orders', type: 'order.paid', payload: json({ order: 1, by: 'gold' }), eventId }),
    )
    expect(error.message).toContain(eventId)
    expect(error.problems.map(({ path }) => path)).toEqual(['/payload/order', '/payload/by'])
    expect(error.cause).toBeUndefined()
  })

  it.each([
    ['is neither a registered type nor topic', { topic: 'x', type: 'y', payload: json({}) }, '/type'],
    ['has a name that every object has', { topic: 'toString', type: '__proto__', payload: json({}) }, '/type'],
    ['is no JSON', { topic: 'stock', payload: Buffer.from('{') }, '/payload'],
    ['is no UTF-8', { topic: 'stock', payload: Buffer.from([0x22, 0xff, 0x22]) }, '/payload'],
    [
      'is called no JSON',
      { topic: 'profiles', payload: json({ user: 'a' }), contentType: 'image/png' },
      '/payload/user',
    ],
  ])('refuses what %s', async (_, event, path) => {
    const error = await refusal(shop.decode(event))
    expect(error.problems.map((problem) => problem.path)).toEqual([path])
    expect(error.cause).toBeUndefined()
  })

  it('waits for a schema that answers later, and keeps what one threw', async () => {
    const registry = defineEvents({
      later: { schema: z.string().refine((text) => Promise.resolve(text !== 'bad')), key: () => null },
      broken: {
        schema: schema(() => {
          throw new RangeError('the schema is broken')
        }),
        key: () => null,
      },
    })
    expect(await registry.decode({ topic: 'later', payload: json('good') })).toMatchObject({ payload: 'good' })
    expect((await refusal(registry.decode({ topic: 'later', payload: json('bad') }))).problems).toHaveLength(1)
    expect((await refusal(registry.decode({ topic: 'broken', payload: json(1) }))).cause).toBeInstanceOf(RangeError)
  })

  it('reads with a parser of the application, and keeps what that threw', async () => {
    const parse = (bytes: Uint8Array, contentType: string): unknown => {
      if (bytes.byteLength === 0) throw new RangeError('empty')
      return [contentType, bytes.byteLength]
    }
    const registry = defineEvents({ t: { schema: schema((value) => ({ value })), key: () => null } }, { parse })
    expect(await registry.decode({ topic: 't', payload: new Uint8Array(3), contentType: 'x/y' })).toMatchObject({
      payload: ['x/y', 3],
    })
    expect((await refusal(registry.decode({ topic: 't', payload: new Uint8Array() }))).cause).toBeInstanceOf(RangeError)
  })

  it('is typed by the name', () => {
    type Decoded = DecodedEvent<SchemasOf<typeof shop>, OutboxEvent>
    expectTypeOf((event: OutboxEvent) => shop.decode(event)).returns.resolves.toEqualTypeOf<Decoded>()
    expectTypeOf<Decoded['name']>().toEqualTypeOf<'order.placed' | 'order.paid' | 'stock' | 'profiles'>()
    expectTypeOf<Extract<Decoded, { name: 'order.placed' }>['payload']>().toEqualTypeOf<{
      id: string
      total: number
      note?: string | undefined
    }>()
    expectTypeOf<Extract<Decoded, { name: 'order.paid' }>['payload']['by']>().toEqualTypeOf<'card' | 'cash'>()
    expectTypeOf<Extract<Decoded, { name: 'stock' }>['payload']['left']>().toEqualTypeOf<number>()
    expectTypeOf<Extract<Decoded, { name: 'profiles' }>['payload']>().toEqualTypeOf<{ user: string } | null>()
    expectTypeOf<Decoded['eventId']>().toEqualTypeOf<string>()
  })
})

describe('defineEvents', () => {
  it('infers the payload of a key function from its own schema', () => {
    const registry = defineEvents({
      a: { schema: z.object({ x: z.coerce.number() }), key: ({ x }) => x.toFixed() },
      b: { topic: 't', schema: z.string().nullable(), key: (text) => text.toUpperCase() },
    })
    expectTypeOf(registry).toExtend<EventRegistry>()
    expectTypeOf<keyof (typeof registry)['definitions']>().toEqualTypeOf<'a' | 'b'>()
    // @ts-expect-error a member that the payload does not have
    defineEvents({ a: { schema: z.object({ x: z.string() }), key: ({ y }) => String(y) } })
    // @ts-expect-error a key that is neither text nor null
    defineEvents({ a: { schema: z.object({ x: z.number() }), key: ({ x }) => x } })
    // @ts-expect-error a key that comes later
    defineEvents({ a: { schema: z.string(), key: async () => 'x' } })
  })

  it('refuses everything that is wrong in one error', () => {
    const good = { schema: z.string(), key: () => null }
    const bad = {
      '': good,
      ['x'.repeat(256)]: good,
      noSchema: { key: () => null },
      noKey: { schema: z.string() },
      halfSchema: { schema: { '~standard': {} }, key: () => null },
      badTopic: { ...good, topic: '' },
      typo: { ...good, topik: 'orders' },
      nothing: null,
    }
    expect(() => defineEvents(bad as never, { pars: 1 } as never)).toThrow(
      expect.objectContaining({
        code: 'OPTIONS_INVALID',
        problems: [
          'pars',
          '',
          'x'.repeat(256),
          'noSchema.schema',
          'noKey.key',
          'halfSchema.schema',
          'badTopic.topic',
          'typo.topik',
          'nothing.options',
        ].map((path) => expect.objectContaining({ path }) as unknown),
      }),
    )
    expect(() => defineEvents(undefined as never)).toThrow(expect.objectContaining({ code: 'OPTIONS_INVALID' }))
  })
})
