import { pointerStep, type Problem } from '../contract/errors.ts'
import type { Serialize } from '../contract/event.ts'

export interface EncodedPayload {
  readonly bytes: Uint8Array | null
  readonly contentType: string
}

export type Encoding = { readonly encoded: EncodedPayload } | { readonly problem: Problem }

/**
 * The bytes of a payload, decided once, here: bytes stay as they are, null is a tombstone, everything else becomes the
 * UTF-8 text of its JSON. What JSON would change without a word (a Map, NaN, a BigInt) is refused with its place.
 */
export function encodePayload(payload: unknown, serialize: Serialize | undefined): Encoding {
  if (payload === null) return { encoded: { bytes: null, contentType: 'application/json' } }
  if (payload instanceof Uint8Array) return { encoded: { bytes: payload, contentType: 'application/octet-stream' } }
  if (ArrayBuffer.isView(payload) || payload instanceof ArrayBuffer) {
    return refused(
      '',
      'is a view or buffer other than Uint8Array; pass new Uint8Array(buffer) so that the bytes meant are certain',
    )
  }
  const text = serialize === undefined ? toJson(payload) : serialized(payload, serialize)
  if ('problem' in text) return text
  return { encoded: { bytes: text.bytes, contentType: 'application/json' } }
}

type Text = { readonly bytes: Uint8Array } | { readonly problem: Problem }

function serialized(payload: unknown, serialize: Serialize): Text {
  try {
    const result: unknown = serialize(payload)
    if (typeof result === 'string') {
      // As UTF-8 the half would silently become another character.
      return result.isWellFormed()
        ? { bytes: Buffer.from(result) }
        : refused('', 'was turned into text with half of a surrogate pair by the serialize option')
    }
    if (result instanceof Uint8Array) return { bytes: result }
    return refused('', 'was turned into neither text nor bytes by the serialize option')
  } catch (error) {
    return refused('', `could not be serialized: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function toJson(payload: unknown): Text {
  const paths = new WeakMap<object, string>()
  let problem: Problem | undefined
  // The replacer sees each value after its own toJSON, so a Date is text by then; its holder tells where it stands. The
  // root's holder is an object of JSON.stringify's own and the only one without a path.
  function check(this: object, name: string, value: unknown): unknown {
    const parent = paths.get(this)
    const path = parent === undefined ? '' : `${parent}/${pointerStep(name)}`
    const reason =
      invalidDate((this as Record<string, unknown>)[name]) ??
      whyNotJson(value, parent === undefined || Array.isArray(this))
    if (reason !== undefined) problem ??= { path, message: reason }
    if (typeof value === 'object' && value !== null) paths.set(value, path)
    return problem === undefined ? value : null
  }
  try {
    const text = JSON.stringify(payload, check)
    return problem === undefined ? { bytes: Buffer.from(text) } : { problem }
  } catch (error) {
    return refused('', `cannot be turned into JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function whyNotJson(value: unknown, undefinedMatters: boolean): string | undefined {
  switch (typeof value) {
    case 'bigint':
      return 'is a BigInt, which JSON cannot carry; pass it as text or give a serialize option'
    case 'number':
      return Number.isFinite(value) ? undefined : `is ${String(value)}, which JSON turns into null`
    case 'function':
    case 'symbol':
      return `is a ${typeof value}, which JSON leaves out`
    case 'undefined':
      return undefinedMatters ? 'is undefined; pass null for a tombstone, or leave the member out' : undefined
    case 'object':
      return value === null ? undefined : whyLost(value)
    case 'string':
    case 'boolean':
      return undefined
  }
}

/** A date that is none says null of itself, so only the original shows it. */
function invalidDate(original: unknown): string | undefined {
  return original instanceof Date && Number.isNaN(original.getTime())
    ? 'is an invalid Date, which JSON turns into null'
    : undefined
}

/** Objects of which JSON keeps nothing: a Map, a promise that was not awaited, an error, bytes, and their like. */
function whyLost(value: object): string | undefined {
  if (value instanceof Map || value instanceof Set)
    return 'is a Map or Set, which JSON turns into {}; spread it into an object or an array'
  if (value instanceof Error)
    return 'is an Error, of which JSON leaves out the message; pass what the consumer needs as an object'
  if (ArrayBuffer.isView(value))
    return 'is a view of bytes inside an object, which JSON turns into numbered members; pass it as base64 text or as an array'
  if (value instanceof Number) return whyNotJson(value.valueOf(), false)
  const tag = Object.prototype.toString.call(value).slice(8, -1)
  const usual = tag === 'Object' || Array.isArray(value) || value instanceof String || value instanceof Boolean
  return usual || Object.keys(value).length > 0 ? undefined : `is a ${tag}, which JSON turns into {}`
}

function refused(path: string, message: string): { problem: Problem } {
  return { problem: { path, message } }
}
