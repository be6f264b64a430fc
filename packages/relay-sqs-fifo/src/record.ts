import { createHash } from 'node:crypto'
import { type OutboxEvent, readWireHeaders, type Rejection, wireHeaders, type WireEvent } from '@inorder/core'

/** How identity and headers travel: as attributes of the message, or in a body that is a JSON object. */
export type Format = 'attributes' | 'structured'

/** What to do with a payload that is no text that SQS takes: refuse the event, or carry it as base64. */
export type Binary = 'refuse' | 'base64'

/** A message as it is sent, without what belongs to its queue. */
export interface Entry {
  readonly body: string
  readonly attributes: Readonly<Record<string, string>>
  readonly group: string
  readonly dedupeId: string
  /** What SQS counts: body, and names, types and values of attributes. */
  readonly bytes: number
}

/** A message read back: what a consumer needs to know, under the names of the event it was. */
export interface SqsMessage extends WireEvent {
  /** The bytes as enqueued; null is a tombstone. */
  readonly payload: Buffer | null
}

/** Attribute that says how the body carries the payload when it is not the payload itself. */
const encodingName = 'outbox-encoding'
/** Attribute with the headers that had no room of their own, as JSON. */
const moreName = 'outbox-headers'
const attributeType = 'String'
const mostAttributes = 10
/** SQS takes no empty body, so what has none is sent with this one. */
const emptyBody = '-'

/**
 * The message of an event.
 *
 * @returns what SQS would refuse, with its position, instead of a message.
 */
export function entryOf(event: OutboxEvent, format: Format, binary: Binary, oneGroup: boolean): Entry | Rejection {
  const content = bodyOf(event, binary)
  if ('reason' in content) return content
  const headers = wireHeaders(event)
  const { body, attributes } =
    format === 'attributes'
      ? { body: content.body, attributes: attributesOf(headers, content.encoding) }
      : structured(headers, event, content.encoding)
  let bytes = Buffer.byteLength(body)
  for (const [name, value] of Object.entries(attributes)) {
    const bad = refusedCharacter(value)
    if (bad !== undefined) return { reason: `The headers have ${bad}, which SQS cannot carry` }
    bytes += Buffer.byteLength(name) + attributeType.length + Buffer.byteLength(value)
  }
  const group = oneGroup ? 'outbox' : groupOf(event)
  return { body, attributes, group, dedupeId: dedupeIdOf(event), bytes }
}

/**
 * The message group of an event: its topic and key where SQS takes them, separated by a slash that the topic has not, and
 * otherwise a hash of both. Hashes begin with a tilde, which no other group does, so two keys never share a group. An
 * event without a key has a group of its own.
 */
export function groupOf({ topic, key, eventId }: OutboxEvent): string {
  if (key === null) return `~-${eventId}`
  const plain = `${topic}/${key}`
  const fits = plain.length <= 128 && groupCharacters.test(plain) && !topic.includes('/') && !topic.startsWith('~')
  return fits
    ? plain
    : `~${createHash('sha256')
        .update(JSON.stringify([topic, key]))
        .digest('hex')}`
}

const groupCharacters = /^[\x21-\x7e]+$/

/**
 * What SQS drops repetitions by, for five minutes: the event id, and how often it was put back in line, because an
 * operator who does that wants it delivered again.
 */
function dedupeIdOf({ eventId, requeues }: OutboxEvent): string {
  return requeues === 0 ? eventId : `${eventId}.r${requeues}`
}

type Encoding = 'base64' | 'empty' | 'tombstone'

function bodyOf(event: OutboxEvent, binary: Binary): { body: string; encoding?: Encoding } | Rejection {
  const { payload } = event
  if (payload === null || payload.byteLength === 0) {
    const encoding = payload === null ? 'tombstone' : 'empty'
    if (binary === 'base64') return { body: emptyBody, encoding }
    return { reason: `The payload is ${payload === null ? 'null' : 'empty'}; SQS takes no empty body. ${wayOut}` }
  }
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  const text = bytes.toString()
  const problem = Buffer.from(text).equals(bytes)
    ? refusedCharacter(text)
    : `bytes that are no UTF-8 (from byte ${firstDifference(text, bytes)} on)`
  if (problem === undefined) return { body: text }
  if (binary === 'base64') return { body: bytes.toString('base64'), encoding: 'base64' }
  return { reason: `The payload has ${problem}, which SQS cannot carry. ${wayOut}` }
}

const wayOut = "The option binary: 'base64' sends such events in an encoding"

/** The first character that SQS refuses, in words. */
function refusedCharacter(text: string): string | undefined {
  // eslint-disable-next-line no-control-regex -- exactly the characters that the API reference leaves out
  const found = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/.exec(text)
  if (found === null) return undefined
  const code = found[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')
  return `the character U+${code} at position ${found.index}`
}

function firstDifference(text: string, bytes: Buffer): number {
  const other = Buffer.from(text)
  return bytes.findIndex((byte, index) => byte !== other[index])
}

/**
 * At most ten attributes: identity first, then headers, each under its own name; what is too many, empty or has a name
 * that SQS refuses goes into one more as JSON.
 */
function attributesOf(
  headers: Readonly<Record<string, string>>,
  encoding: Encoding | undefined,
): Record<string, string> {
  const attributes: Record<string, string> = encoding === undefined ? {} : { [encodingName]: encoding }
  const more: Record<string, string> = {}
  const isIdentity = ([name]: [string, string]): boolean => name.startsWith('outbox-')
  const entries = Object.entries(headers)
  const ordered = [...entries.filter(isIdentity), ...entries.filter((entry) => !isIdentity(entry))]
  const fits = ordered.filter(([name, value]) => value !== '' && attributeName.test(name))
  const packs = fits.length < ordered.length || fits.length + Object.keys(attributes).length > mostAttributes
  const room = mostAttributes - Object.keys(attributes).length - (packs ? 1 : 0)
  const own = new Set(fits.slice(0, room).map(([name]) => name))
  for (const [name, value] of ordered) (own.has(name) ? attributes : more)[name] = value
  return packs ? { ...attributes, [moreName]: JSON.stringify(more) } : attributes
}

/** Names that begin with AWS. or Amazon. are reserved, and a dot may neither begin nor end one nor follow another. */
const attributeName = /^(?!(?:aws|amazon)\.)(?!\.)(?!.*\.\.)[\w.-]{1,256}(?<!\.)$/i

interface Structured {
  readonly headers: Readonly<Record<string, string>>
  readonly payload: string | null
  readonly encoding?: Encoding
}

function structured(
  headers: Readonly<Record<string, string>>,
  { payload }: OutboxEvent,
  encoding: Encoding | undefined,
): { body: string; attributes: Record<string, string> } {
  const text = payload === null ? null : Buffer.from(payload).toString(encoding === 'base64' ? 'base64' : 'utf8')
  const whole: Structured = { headers, payload: text, ...(encoding === undefined ? {} : { encoding }) }
  return { body: JSON.stringify(whole).replace(/[\ufffe\uffff]/g, escaped), attributes: {} }
}

/** Two characters that JSON may hold as they are and SQS may not. */
function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16)}`
}

/**
 * Reads a message back, as `ReceiveMessage` gives it with `MessageAttributeNames: ['All']`.
 *
 * @throws Error when it was not written by this publisher.
 */
export function decodeMessage(message: {
  readonly Body?: string | undefined
  readonly MessageAttributes?: Readonly<Record<string, { readonly StringValue?: string | undefined }>> | undefined
}): SqsMessage {
  const { Body: body = '', MessageAttributes: given = {} } = message
  const attributes = Object.fromEntries(
    Object.entries(given).map(([name, { StringValue }]) => [name, StringValue ?? '']),
  )
  if (Object.keys(attributes).length === 0) {
    const { headers, payload, encoding } = JSON.parse(body) as Structured
    return { ...readWireHeaders(headers), payload: payload === null ? null : decoded(payload, encoding) }
  }
  const { [moreName]: more, [encodingName]: encoding, ...own } = attributes
  const headers = { ...own, ...(more === undefined ? {} : (JSON.parse(more) as Record<string, string>)) }
  return { ...readWireHeaders(headers), payload: decoded(body, encoding as Encoding | undefined) }
}

function decoded(text: string, encoding: Encoding | undefined): Buffer | null {
  if (encoding === 'tombstone') return null
  if (encoding === 'empty') return Buffer.alloc(0)
  return Buffer.from(text, encoding === 'base64' ? 'base64' : 'utf8')
}
