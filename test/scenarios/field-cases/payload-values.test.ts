import { createHash } from 'node:crypto'
import type { EventInput } from '@inorder/core'
import { afterAll, describe, expect, it } from 'vitest'
import { json, openScene, text } from './scene.ts'

const scene = await openScene()
afterAll(() => scene.close())

// A string is a JSON value like any other and becomes JSON text; text that is JSON already goes in as its bytes.
const written = (body: string): Pick<EventInput, 'payload' | 'contentType'> => ({
  payload: Buffer.from(body),
  contentType: 'application/json',
})

describe('digits that a double cannot hold', () => {
  const body = '{"account":9007199254740993,"amount":10.00,"ratio":0.10000000000000000001,"big":1e400}'
  const long = `{"account":9007199254740993,"amount":10.00,"pad":"${'x'.repeat(100_000)}"}`

  it('arrive to the last one, in a small body and in one that is loaded separately', async () => {
    await scene.enqueue({ topic: 'money', key: 'a', ...written(body) }, { topic: 'money', key: 'a', ...written(long) })
    expect((await scene.deliver()).map(text)).toEqual([body, long])
  })

  it('arrive to the last one after a failed try', async () => {
    const fault = scene.broker.reject({ key: 'retried' }, { times: 1, retryAfterMs: 0 })
    await scene.enqueue({ topic: 'money', key: 'retried', ...written(body) })
    const [delivery] = await scene.deliver()
    expect(fault.hits).toBe(1)
    expect(delivery).toMatchObject({ attempt: 2 })
    expect(text(delivery as never)).toBe(body)
  })

  it('arrive to the last one from the SQL function, which takes jsonb', async () => {
    await scene.pool.query(`select outbox.enqueue('money', 'a', $1::jsonb)`, [body])
    const [delivery] = await scene.deliver()
    for (const digits of ['9007199254740993', '10.00', '0.10000000000000000001'])
      expect(text(delivery as never)).toContain(digits)
  })
})

describe('a body that was signed', () => {
  const body = '{"b":2,"a":1,  "c":"é"}'
  const sha256 = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex')

  it('arrives with the bytes that were signed: order, white space and repeated names included', async () => {
    const bodies = [body, '{"a":1,"a":2}', ' \n[1 , 2]\t', '{"n":1.0,"m":1.00e0}']
    for (const each of bodies)
      await scene.enqueue({ topic: 'signed', key: 'k', headers: { sha256: sha256(each) }, ...written(each) })
    const delivered = await scene.deliver()
    expect(delivered.map(text)).toEqual(bodies)
    for (const { payload, headers } of delivered) expect(sha256(payload ?? '')).toBe(headers['sha256'])
    expect(delivered[0]?.headers['sha256']).toBe('f23c27b954ed926782fec5e2dc152c8a4b85b4d466bf6abe1cb66810694c68ec')
  })

  it('arrives with the bytes that were signed from plain SQL', async () => {
    await scene.pool.query(
      `insert into outbox.events (topic, key, payload) values ('signed', 'k', convert_to($1, 'UTF8'))`,
      [body],
    )
    expect((await scene.deliver()).map(text)).toEqual([body])
  })
})

describe('a value that JSON would change without a word is refused with its place:', () => {
  const invalidDate = new Date(Number.NaN)
  it.each<[string, unknown, string]>([
    ['a BigInt', { id: 12n }, '/payload/id'],
    ['a Map', { tags: new Map([[1, 2]]) }, '/payload/tags'],
    ['a Set', { tags: new Set([1]) }, '/payload/tags'],
    ['NaN', { ratio: Number.NaN }, '/payload/ratio'],
    ['Infinity', [1, [Infinity]], '/payload/1/0'],
    ['-Infinity', { a: { 'b/c~d': -Infinity } }, '/payload/a/b~1c~0d'],
    ['a function', { run: () => 1 }, '/payload/run'],
    ['a symbol', { tag: Symbol('x') }, '/payload/tag'],
    ['undefined', undefined, '/payload'],
    ['a hole in a list', [1, undefined, 3], '/payload/1'],
    ['a function alone', () => 1, '/payload'],
    ['a BigInt alone', 12n, '/payload'],
    ['NaN alone', Number.NaN, '/payload'],
    ['a date that is none', { at: invalidDate }, '/payload/at'],
    ['a date that is none, alone', invalidDate, '/payload'],
    ['a promise that was not awaited', { order: Promise.resolve(1) }, '/payload/order'],
    ['an error', { cause: new Error('lost') }, '/payload/cause'],
    ['a regular expression', { match: /x/ }, '/payload/match'],
    ['a WeakMap', { cache: new WeakMap() }, '/payload/cache'],
    ['search parameters', { query: new URLSearchParams('a=1') }, '/payload/query'],
    ['bytes inside an object', { body: new Uint8Array(2) }, '/payload/body'],
    ['a buffer inside an object', { body: new ArrayBuffer(2) }, '/payload/body'],
    ['a buffer alone', new ArrayBuffer(2), '/payload'],
    ['a view alone', new DataView(new ArrayBuffer(2)), '/payload'],
    ['a boxed NaN', { ratio: new Number(Number.NaN) }, '/payload/ratio'],
  ])('%s', async (_, payload, path) => {
    await scene.transaction(async (tx) => {
      await expect(scene.outbox.enqueue(tx, { topic: 'refused', key: null, payload })).rejects.toMatchObject({
        code: 'EVENT_INVALID',
        problems: [{ path, index: 0 }],
      })
      expect((await tx.query('select 1 as alive')).rows).toEqual([{ alive: 1 }])
    })
    expect(await scene.count('select count(*) from outbox.events where topic = $1', ['refused'])).toBe(0)
  })

  it('a circle, and nesting without end', async () => {
    const circle: Record<string, unknown> = {}
    circle['self'] = circle
    let deep: unknown = 1
    for (let depth = 0; depth < 100_000; depth++) deep = [deep]
    for (const payload of [circle, deep]) {
      await expect(scene.enqueue({ topic: 'values', key: null, payload })).rejects.toMatchObject({
        code: 'EVENT_INVALID',
        problems: [{ path: '/payload', index: 0 }],
      })
    }
  })
})

describe('a value that JSON can carry', () => {
  class Money {
    readonly #cents: number
    constructor(cents: number) {
      this.#cents = cents
    }
    toJSON(): string {
      return (this.#cents / 100).toFixed(2)
    }
  }
  class Pinged {
    happened(): boolean {
      return true
    }
  }
  const shared = { x: 1 }

  it.each<[string, unknown, string]>([
    [
      'a date, and members that are undefined',
      { at: new Date(0), gone: undefined },
      '{"at":"1970-01-01T00:00:00.000Z"}',
    ],
    ['an object that says what it is', { price: new Money(1050) }, '{"price":"10.50"}'],
    ['an object without members', [new Pinged(), {}, Object.create(null)], '[{},{},{}]'],
    ['one object in two places', { a: shared, b: [shared] }, '{"a":{"x":1},"b":[{"x":1}]}'],
    ['null inside', { a: null, b: [null] }, '{"a":null,"b":[null]}'],
    ['text', 'Zażółć "gęślą" \u2028', '"Zażółć \\"gęślą\\" \u2028"'],
    ['numbers', [0, -1.5, 1e21, Number.MAX_SAFE_INTEGER], '[0,-1.5,1e+21,9007199254740991]'],
    ['booleans', [true, false], '[true,false]'],
    ['dangerous names', JSON.parse('{"__proto__":{"a":1},"constructor":2}'), '{"__proto__":{"a":1},"constructor":2}'],
  ])('arrives as its JSON text: %s', async (_, payload, body) => {
    await scene.enqueue({ topic: 'values', key: null, payload })
    const [delivery] = await scene.deliver()
    expect(text(delivery as never)).toBe(body)
    expect(delivery).toMatchObject({ contentType: 'application/json' })
  })

  it('arrives as the serialize option writes it', async () => {
    const own = await openScene({
      serialize: (payload) =>
        JSON.stringify(payload, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value)),
    })
    try {
      await own.enqueue({ topic: 'values', key: null, payload: { id: 12n } })
      expect((await own.deliver()).map(json)).toEqual([{ id: '12' }])
      await expect(own.enqueue({ topic: 'values', key: null, payload: undefined })).rejects.toMatchObject({
        code: 'EVENT_INVALID',
        problems: [{ path: '/payload' }],
      })
    } finally {
      await own.close()
    }
  })
})

describe('headers are text on every broker:', () => {
  it('numbers, booleans, big integers and dates become their usual text, undefined is left out', async () => {
    const headers = {
      n: 12n,
      big: 9007199254740993n,
      neg: -1,
      yes: true,
      at: new Date(0),
      gone: undefined,
      text: 'żółć 😀',
      empty: '',
    }
    await scene.enqueue({ topic: 'headers', key: null, payload: {}, headers })
    expect((await scene.deliver())[0]?.headers).toEqual({
      n: '12',
      big: '9007199254740993',
      neg: '-1',
      yes: 'true',
      at: '1970-01-01T00:00:00.000Z',
      text: 'żółć 😀',
      empty: '',
    })
  })

  it('a header with a dangerous name arrives like any other', async () => {
    const headers = JSON.parse('{"__proto__":"a","constructor":"b"}') as Record<string, string>
    await scene.enqueue({ topic: 'headers', key: null, payload: {}, headers })
    expect(Object.entries((await scene.deliver())[0]?.headers ?? {})).toEqual([
      ['__proto__', 'a'],
      ['constructor', 'b'],
    ])
  })

  it.each<[string, unknown, string]>([
    ['an object', { a: {} }, '/headers/a'],
    ['null', { a: null }, '/headers/a'],
    ['NaN', { a: Number.NaN }, '/headers/a'],
    ['a date that is none', { a: new Date(Number.NaN) }, '/headers/a'],
    ['a name of 300 bytes', { ['n'.repeat(300)]: 'x' }, `/headers/${'n'.repeat(300)}`],
    ['an empty name', { '': 'x' }, '/headers/'],
    ['a name that carries identity', { 'Outbox-Event-Id': 'x' }, '/headers/Outbox-Event-Id'],
    ['a list', ['x'], '/headers'],
    ['a Map, whose entries would be lost', new Map([['a', 'b']]), '/headers'],
    ['Headers, whose entries would be lost', new Headers({ a: 'b' }), '/headers'],
  ])('%s is refused', async (_, headers, path) => {
    await expect(
      scene.enqueue({ topic: 'refused', key: null, payload: {}, headers: headers as never }),
    ).rejects.toMatchObject({
      code: 'EVENT_INVALID',
      problems: [{ path, index: 0 }],
    })
    expect(await scene.count('select count(*) from outbox.events where topic = $1', ['refused'])).toBe(0)
  })

  it('plain SQL writes text there or is refused, since a number would lose digits on its way', async () => {
    const insert = `insert into outbox.events (topic, key, payload, headers) values ('headers', null, '{}', $1)`
    for (const headers of ['{"n": 9007199254740993}', '{"o": {"x": 1}}', '{"z": null}', '["a"]']) {
      await expect(scene.pool.query(insert, [headers])).rejects.toMatchObject({ code: '23514' })
    }
    await scene.pool.query(insert, ['{"n": "9007199254740993"}'])
    expect((await scene.deliver())[0]?.headers).toEqual({ n: '9007199254740993' })
  })
})
