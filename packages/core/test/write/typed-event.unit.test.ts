import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { OutboxError } from '../../src/contract/errors.ts'
import { defineEvents, type EventRegistry } from '../../src/contract/event-registry.ts'
import type { NewEvent } from '../../src/storage/insert-events.ts'
import { checkEvents } from '../../src/write/check-events.ts'
import type { EventInput, EventLimits } from '../../src/write/validate-event.ts'
import { shop } from '../support/shop-events.ts'

const limits: EventLimits = { maxPayloadBytes: 1000, serialize: undefined }

async function written(input: Partial<EventInput>, registry: EventRegistry = shop, with_ = limits): Promise<NewEvent> {
  const [event] = await checkEvents([input as EventInput], with_, registry)
  if (event === undefined) throw new Error('nothing was checked')
  return event
}

async function refused(input: object, registry: EventRegistry = shop, with_ = limits): Promise<OutboxError> {
  return checkEvents([input as EventInput], with_, registry).then(
    () => expect.fail('it was not refused'),
    (error: unknown) => error as OutboxError,
  )
}

const pathsOf = async (...given: Parameters<typeof refused>): Promise<string[]> =>
  (await refused(...given)).problems.map(({ path }) => path)

/** A schema written by hand, as any library may have it. */
const hand = (validate: (value: unknown) => unknown): EventRegistry =>
  defineEvents({ t: { schema: { '~standard': { version: 1, vendor: 'hand', validate } } as never, key: () => null } })

describe('an event of a registry', () => {
  it('gets topic and key from there', async () => {
    expect(await written({ type: 'order.placed', payload: { id: 'o-1', total: 5 } })).toMatchObject({
      topic: 'orders',
      type: 'order.placed',
      key: 'o-1',
    })
    expect(await written({ type: 'stock', payload: { item: 'pen', left: 1 } })).toMatchObject({
      topic: 'stock',
      type: 'stock',
      key: null,
    })
  })

  it('may be called by its topic where the registry gives it no other', async () => {
    expect(await written({ topic: 'stock', payload: { item: 'pen', left: 1 } })).toMatchObject({
      topic: 'stock',
      type: null,
    })
    expect(await pathsOf({ topic: 'order.placed', payload: { id: 'a' } })).toEqual(['/topic'])
  })

  it('is stored as its schema gives it: with defaults, trimmed, and without what the schema does not know', async () => {
    const { payload } = await written({ type: 'order.placed', payload: { id: 'a', note: ' hi ', password: 'x' } })
    expect(Buffer.from(payload ?? []).toString()).toBe('{"id":"a","total":0,"note":"hi"}')
  })

  it('keeps headers, id, delay and ordering of the call', async () => {
    const eventId = 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'
    const more = { eventId, headers: { a: '1' }, delayMs: 5, ordering: 'total' as const }
    expect(await written({ type: 'order.placed', payload: { id: 'a' }, ...more })).toMatchObject({
      eventId,
      headers: '{"a":"1"}',
      delayMs: 5,
      ordering: 'total',
    })
  })

  it('names the key of a tombstone itself, because there is no payload to take it from', async () => {
    expect(await written({ topic: 'profiles', key: 'u-1', payload: null })).toMatchObject({ key: 'u-1', payload: null })
    expect(await pathsOf({ topic: 'profiles', payload: null })).toEqual(['/key'])
    expect(await pathsOf({ topic: 'stock', key: 'a', payload: null })).toEqual(['/payload'])
  })

  it.each<[string, object, string[]]>([
    [
      'has a payload that the schema refuses',
      { type: 'order.paid', payload: { by: 'gold' } },
      ['/payload/order', '/payload/by'],
    ],
    ['has no payload', { type: 'order.placed' }, ['/payload']],
    ['names its key although the registry does', { type: 'order.placed', key: 'a', payload: { id: 'a' } }, ['/key']],
    ['goes to another topic', { type: 'order.placed', topic: 'bills', payload: { id: 'a' } }, ['/topic']],
    ['is not registered', { type: 'order.payd', topic: 'orders', payload: {} }, ['/type']],
    ['has a name that every object has', { type: 'constructor', payload: {} }, ['/type']],
    ['has a member that events do not have', { type: 'order.placed', payload: { id: 'a' }, kye: 1 }, ['/kye']],
    ['is too large', { type: 'order.placed', payload: { id: 'x'.repeat(1025) } }, ['/key', '/payload']],
  ])('is refused when it %s', async (_, input, paths) => {
    expect(await pathsOf(input)).toEqual(paths)
  })

  it('is refused when it is no object', async () => {
    for (const nothing of [null, undefined, 'order.placed', 1]) expect(await pathsOf(nothing as never)).toEqual([''])
  })

  it('is refused together with every other of its call, each by its position', async () => {
    const good = { type: 'order.placed', payload: { id: 'a' } }
    const error: OutboxError = await checkEvents(
      [good, { type: 'nope' }, good, { type: 'order.placed', payload: { id: 1 } }] as never,
      limits,
      shop,
    ).then(
      () => expect.fail('it was not refused'),
      (reason: unknown) => reason as OutboxError,
    )
    expect(error.problems.map(({ path, index }) => [index, path])).toEqual([
      [1, '/type'],
      [3, '/payload/id'],
    ])
  })
})

describe('a schema', () => {
  it('may answer later, and is waited for', async () => {
    const registry = defineEvents({
      t: { schema: z.object({ id: z.string().refine(async (id) => id !== 'taken') }), key: ({ id }) => id },
    })
    expect(await written({ type: 't', payload: { id: 'free' } }, registry)).toMatchObject({ key: 'free' })
    expect(await pathsOf({ type: 't', payload: { id: 'taken' } }, registry)).toEqual(['/payload/id'])
  })

  it.each<[string, (value: unknown) => unknown]>([
    [
      'throws',
      () => {
        throw new RangeError('no')
      },
    ],
    ['rejects', () => Promise.reject(new RangeError('no'))],
    ['answers nothing', () => undefined],
  ])('that %s is told from a payload that is wrong', async (_, validate) => {
    const error = await refused({ type: 't', payload: 1 }, hand(validate))
    expect(error).toMatchObject({ code: 'EVENT_INVALID', problems: [{ path: '/payload', index: 0 }] })
    expect(error.cause).toBeInstanceOf(Error)
  })

  it('names a place inside a list, and one whose name has a slash', async () => {
    const issues = [{ message: 'a', path: ['list', 0, { key: 'a/b~c' }] }, { message: 'b' }]
    expect(
      await pathsOf(
        { type: 't', payload: 1 },
        hand(() => ({ issues })),
      ),
    ).toEqual(['/payload/list/0/a~1b~0c', '/payload'])
  })

  it.each<[string, EventRegistry, unknown]>([
    [
      'a date that JSON turns into text',
      defineEvents({ t: { schema: z.object({ at: z.date() }), key: () => null } }),
      { at: new Date() },
    ],
    [
      'a text that becomes a number',
      defineEvents({ t: { schema: z.string().transform(Number), key: () => null } }),
      '5',
    ],
    [
      'a text that grows each time',
      defineEvents({ t: { schema: z.string().transform((text) => `${text}!`), key: () => null } }),
      'a',
    ],
  ])('that could not read its own result back is refused before it is stored: %s', async (_, registry, payload) => {
    const error = await refused({ type: 't', payload }, registry)
    expect(error.problems).toEqual([
      {
        path: expect.stringMatching(/^\/payload/) as string,
        message: expect.stringContaining('read back') as string,
        index: 0,
      },
    ])
  })

  it.each<[string, EventRegistry, unknown, string]>([
    [
      'a date that it makes of text',
      defineEvents({ t: { schema: z.coerce.date(), key: () => null } }),
      new Date(0),
      '"1970-01-01T00:00:00.000Z"',
    ],
    [
      'an optional member that is undefined',
      defineEvents({ t: { schema: z.object({ a: z.string().optional() }), key: () => null } }),
      { a: undefined },
      '{}',
    ],
  ])('that reads its own result back is taken: %s', async (_, registry, payload, text) => {
    expect(Buffer.from((await written({ type: 't', payload }, registry)).payload ?? []).toString()).toBe(text)
  })

  it('of bytes gets them as they are', async () => {
    const registry = defineEvents({ t: { schema: z.instanceof(Uint8Array), key: (bytes) => String(bytes.byteLength) } })
    expect(await written({ type: 't', payload: new Uint8Array([0, 255]) }, registry)).toMatchObject({
      key: '2',
      payload: new Uint8Array([0, 255]),
      contentType: 'application/octet-stream',
    })
  })

  it('sees what a serializer and its parser make of the payload', async () => {
    const schema = z.object({ at: z.date() })
    const parse = (bytes: Uint8Array): unknown => ({ at: new Date(Number(Buffer.from(bytes).toString().slice(1))) })
    const registry = defineEvents({ t: { schema, key: () => null } }, { parse })
    let salt = 0
    // Like an encryption, it never makes the same bytes twice.
    const serialize = (payload: unknown): string =>
      `${String(salt++ % 10)}${String((payload as { at: Date }).at.getTime())}`
    await written({ type: 't', payload: { at: new Date(5) } }, registry, { ...limits, serialize })
    const silly = { ...limits, serialize: () => 'x?' }
    expect(await pathsOf({ type: 't', payload: { at: new Date(5) } }, registry, silly)).toEqual(['/payload/at'])
  })
})

describe('a key function', () => {
  const keyed = (key: () => unknown): EventRegistry =>
    defineEvents({ t: { schema: z.object({}), key: key as () => null } })

  it('that throws is told from a bad event', async () => {
    const broken = keyed(() => {
      throw new RangeError('no')
    })
    const error = await refused({ type: 't', payload: {} }, broken)
    expect(error).toMatchObject({ code: 'EVENT_INVALID', problems: [{ path: '/key', index: 0 }] })
    expect(error.cause).toBeInstanceOf(RangeError)
  })

  it.each([undefined, 5, {}, Promise.resolve('a')])('must give text or null, not %s', async (key) => {
    expect(
      await pathsOf(
        { type: 't', payload: {} },
        keyed(() => key),
      ),
    ).toEqual(['/key'])
  })

  it('may give what no key can be, which is refused as ever', async () => {
    expect(
      await pathsOf(
        { type: 't', payload: {} },
        keyed(() => 'a\0'),
      ),
    ).toEqual(['/key'])
    expect(
      (
        await written(
          { type: 't', payload: {} },
          keyed(() => ''),
        )
      ).key,
    ).toBe('')
  })
})
