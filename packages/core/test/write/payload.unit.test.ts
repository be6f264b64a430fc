import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodePayload } from '../../src/write/payload.ts'

const bytesOf = (payload: unknown, serialize?: (payload: unknown) => string | Uint8Array): Uint8Array | null => {
  const encoding = encodePayload(payload, serialize)
  if ('problem' in encoding) throw new Error(`${encoding.problem.path} ${encoding.problem.message}`)
  return encoding.encoded.bytes
}
const textOf = (payload: unknown): string => Buffer.from(bytesOf(payload) ?? []).toString()
const problemOf = (payload: unknown, serialize?: (payload: unknown) => string | Uint8Array): string => {
  const encoding = encodePayload(payload, serialize)
  return 'problem' in encoding ? encoding.problem.path : 'taken'
}

describe('a payload', () => {
  it('of any JSON value is the text that JSON.stringify makes of it', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        fc.pre(value !== null)
        expect(textOf(value)).toBe(JSON.stringify(value))
      }),
    )
  })

  it('of text survives whatever the text is, half emoji and NUL included', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 0xffff })), (units) => {
        const value = String.fromCharCode(...units)
        expect(JSON.parse(textOf(value))).toBe(value)
        expect(JSON.parse(textOf({ [value]: value }))).toEqual({ [value]: value })
      }),
    )
  })

  it('of bytes is those very bytes, and the serialize option is not asked', () => {
    const asked = (): never => {
      throw new Error('asked')
    }
    const value = new Uint8Array([1, 2])
    expect(bytesOf(value, asked)).toBe(value)
    expect(bytesOf(null, asked)).toBeNull()
  })

  it('of any value that is not JSON is refused or survives, but never changes', () => {
    const anything = fc.anything({
      withBigInt: true,
      withMap: true,
      withSet: true,
      withTypedArray: true,
      withSparseArray: true,
      withDate: true,
    })
    fc.assert(
      fc.property(anything, (value) => {
        if (value === null || value instanceof Uint8Array || problemOf(value) !== 'taken') return
        expect(JSON.parse(textOf(value))).toEqual(asJson(value))
      }),
      { numRuns: 2000 },
    )
  })
})

/** What is left of a value once dates are text, undefined members are gone and 0 has no sign. */
function asJson(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Number || value instanceof String || value instanceof Boolean) return asJson(value.valueOf())
  if (Object.is(value, -0)) return 0
  if (Array.isArray(value)) return value.map(asJson)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .map(([name, member]) => [name, asJson(member)]),
  )
}

describe('the first value that JSON cannot carry is named by its JSON pointer', () => {
  it.each<[path: string, payload: unknown]>([
    ['/b/c/1/d', { a: 1, b: { c: [0, { d: 1n }] }, e: 2n }],
    ['/a~1b/~0', { 'a/b': { '~': Number.NaN } }],
    ['//', { '': { '': 1n } }],
    ['/0/0/0', [[[undefined]]]],
    ['/x/y', { x: { toJSON: () => ({ y: 1n }) } }],
    ['taken', { x: { toJSON: () => undefined } }],
    ['', { toJSON: () => undefined }],
    ['', undefined],
  ])('%s', (path, payload) => {
    expect(problemOf(payload)).toBe(path)
  })

  it('when it is reached a second time through another way, by the way it was reached', () => {
    const inner: Record<string, unknown> = { fine: 1 }
    expect(problemOf({ first: inner, second: { again: inner, bad: 1n } })).toBe('/second/bad')
  })

  it('and what throws on the way is a refusal, not a crash', () => {
    const throwing = Object.defineProperty({}, 'x', {
      enumerable: true,
      get() {
        throw new Error('no')
      },
    })
    expect(problemOf(throwing)).toBe('')
    expect(
      problemOf({
        toJSON: () => {
          throw new Error('no')
        },
      }),
    ).toBe('')
    expect(problemOf(Object(1n))).toBe('')
  })
})

describe('the serialize option', () => {
  it('may return text or bytes', () => {
    expect(bytesOf({ a: 1 }, () => 'żółć')).toEqual(Buffer.from('żółć'))
    expect(bytesOf({ a: 1 }, () => new Uint8Array([0, 255]))).toEqual(new Uint8Array([0, 255]))
  })

  it.each<[string, () => unknown]>([
    ['nothing', () => undefined],
    ['null', () => null],
    ['a promise', () => Promise.resolve('x')],
    ['an object', () => ({})],
    ['half of an emoji', () => 'x\ud83d'],
    [
      'an error',
      () => {
        throw new Error('no')
      },
    ],
  ])('may not return %s', (_, serialize) => {
    expect(problemOf({ a: 1 }, serialize as () => string)).toBe('')
  })
})
