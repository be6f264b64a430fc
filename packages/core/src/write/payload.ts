import type { Problem } from '../contract/errors.ts'

/** Turns a payload that is neither bytes nor null into what is stored, instead of JSON. */
export type Serialize = (payload: unknown) => string | Uint8Array

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
    return refused('', 'is a view or buffer other than Uint8Array; pass new Uint8Array(buffer) so that the bytes meant are certain')
  }
  const text = serialize === undefined ? toJson(payload) : serialized(payload, serialize)
  if ('problem' in text) return text
  return { encoded: { bytes: text.bytes, contentType: 'application/json' } }
}

type Text = { readonly bytes: Uint8Array } | { readonly problem: Problem }

function serialized(payload: unknown, serialize: Serialize): Text {
  try {
    const result: unknown = serialize(payload)
    if (typeof result === 'string') return { bytes: Buffer.from(result) }
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
    const path = parent === undefined ? '' : `${parent}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
    const reason = whyNotJson(value, parent === undefined || Array.isArray(this))
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
      if (value instanceof Map || value instanceof Set) return 'is a Map or Set, which JSON turns into {}; spread it into an object or an array'
      return undefined
    default:
      return undefined
  }
}

function refused(path: string, message: string): { problem: Problem } {
  return { problem: { path, message } }
}
