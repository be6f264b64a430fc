import { pointerStep, type Problem } from '../contract/errors.ts'
import type { Ordering, Serialize } from '../contract/event.ts'
import { isUuid } from '../contract/uuid.ts'
import type { NewEvent } from '../storage/insert-events.ts'
import { newEventId } from './event-id.ts'
import { encodePayload } from './payload.ts'

/** What an application enqueues. */
export interface EventInput {
  /** Where it goes: 1 to 255 bytes of UTF-8. */
  readonly topic: string
  /** What must stay in order, at most 1,024 bytes of UTF-8. Null is unordered, on purpose; '' is a key like any other. */
  readonly key: string | null
  /**
   * A `Uint8Array` is stored as it is. Null is a tombstone. Everything else, a string included, becomes the UTF-8 text
   * of its JSON; text that is JSON already goes in as `Buffer.from(text)`.
   */
  readonly payload: unknown
  /** What kind of event it is, such as `order.placed`. */
  readonly type?: string
  readonly headers?: Readonly<Record<string, string | number | boolean | bigint | Date | undefined>>
  /** Default: `application/json`, or `application/octet-stream` for bytes. */
  readonly contentType?: string
  /** Default: the mode of the outbox. */
  readonly ordering?: Ordering
  /** The identity that consumers dedupe on, a UUID. Default: a new one. A second enqueue of the same id is a duplicate. */
  readonly eventId?: string
  /** Not before so many milliseconds from now, by the database's clock. An event for later does not hold its key back. */
  readonly delayMs?: number
  /** Not before this moment. At most one of `delayMs` and `availableAt`. */
  readonly availableAt?: Date
}

export interface EventLimits {
  readonly maxPayloadBytes: number
  readonly serialize: Serialize | undefined
}

export type Checked = { readonly event: NewEvent } | { readonly problems: readonly Problem[] }

const orderings: readonly string[] = ['key', 'total', 'none'] satisfies Ordering[]
const known: ReadonlySet<string> = new Set([
  'topic',
  'key',
  'payload',
  'type',
  'headers',
  'contentType',
  'ordering',
  'eventId',
  'delayMs',
  'availableAt',
])
/** What a PostgreSQL interval and a JavaScript date both hold without thought: 100 years. */
const maxDelayMs = 100 * 365 * 24 * 3600 * 1000

/** Checks one event and turns it into what is written. Pure: nothing has reached the database when it refuses. */
export function checkEvent(input: EventInput, limits: EventLimits): Checked {
  const problems: Problem[] = []
  const refuse = (path: string, message: string): void => {
    problems.push({ path, message })
  }
  if (typeof input !== 'object' || (input as unknown) === null)
    return { problems: [{ path: '', message: 'must be an object' }] }
  for (const name of Object.keys(input)) if (!known.has(name)) refuse(`/${name}`, 'is not a field of an event')

  const { topic, key, type, contentType, ordering, eventId, delayMs, availableAt } = input
  checkText('/topic', topic, 1, 255, refuse)
  if ((key as unknown) === undefined) refuse('/key', 'is missing; pass null for an event that need not stay in order')
  else if (key !== null) checkText('/key', key, 0, 1024, refuse)
  if (type !== undefined) checkText('/type', type, 1, 255, refuse)
  if (contentType !== undefined) checkText('/contentType', contentType, 1, 255, refuse)
  if (ordering !== undefined && !orderings.includes(ordering))
    refuse('/ordering', `must be one of ${orderings.join(', ')}`)
  if (eventId !== undefined && (typeof eventId !== 'string' || !isUuid(eventId))) refuse('/eventId', 'must be a UUID')
  if (delayMs !== undefined && !(typeof delayMs === 'number' && delayMs >= 0 && delayMs <= maxDelayMs)) {
    refuse('/delayMs', `must be a number of milliseconds from 0 to ${String(maxDelayMs)}`)
  }
  if (availableAt !== undefined && !isUsualDate(availableAt))
    refuse('/availableAt', 'must be a valid Date between the years 1970 and 9999')
  if (delayMs !== undefined && availableAt !== undefined)
    refuse('/availableAt', 'cannot be given together with delayMs')

  const headers = checkHeaders(input.headers, refuse)
  const encoding = encodePayload(input.payload, limits.serialize)
  if ('problem' in encoding) refuse(`/payload${encoding.problem.path}`, encoding.problem.message)
  else if (encoding.encoded.bytes !== null && encoding.encoded.bytes.byteLength > limits.maxPayloadBytes) {
    refuse(
      '/payload',
      `has ${String(encoding.encoded.bytes.byteLength)} bytes, more than maxPayloadBytes (${String(limits.maxPayloadBytes)})`,
    )
  }
  if (problems.length > 0 || 'problem' in encoding) return { problems }
  return {
    event: {
      eventId: eventId?.toLowerCase() ?? newEventId(),
      chosenId: eventId !== undefined,
      topic,
      key,
      type: type ?? null,
      payload: encoding.encoded.bytes,
      contentType: contentType ?? encoding.encoded.contentType,
      headers: JSON.stringify(headers),
      ordering: ordering ?? null,
      delayMs: delayMs ?? null,
      availableAt: availableAt?.toISOString() ?? null,
    },
  }
}

type Refuse = (path: string, message: string) => void

function checkText(path: string, text: unknown, minBytes: number, maxBytes: number, refuse: Refuse): void {
  if (typeof text !== 'string') {
    refuse(path, 'must be a string')
    return
  }
  // PostgreSQL cannot store NUL, and a lone surrogate would silently become another character: two keys could merge.
  if (text.includes('\0')) refuse(path, 'contains the character NUL, which PostgreSQL text cannot hold')
  if (!text.isWellFormed())
    refuse(path, 'contains half of a surrogate pair, probably text that was cut inside an emoji')
  const bytes = Buffer.byteLength(text)
  if (bytes < minBytes || bytes > maxBytes)
    refuse(path, `has ${String(bytes)} bytes of UTF-8, it must have ${String(minBytes)} to ${String(maxBytes)}`)
}

/** Header values are text on every broker: numbers, booleans and dates become their usual text, undefined is left out. */
function checkHeaders(headers: unknown, refuse: Refuse): Record<string, string> {
  if (headers === undefined) return {}
  // A list, a Map and a Headers object hold their entries elsewhere than in members: they would be lost.
  if (typeof headers !== 'object' || headers === null || Symbol.iterator in headers) {
    refuse('/headers', 'must be a plain object of strings')
    return {}
  }
  const checked: [name: string, text: string][] = []
  for (const [name, value] of Object.entries(headers)) {
    const path = `/headers/${pointerStep(name)}`
    if (value === undefined) continue
    if (name.toLowerCase().startsWith('outbox-'))
      refuse(path, 'has the prefix outbox-, which names the identity of an event on the wire')
    checkText(path, name, 1, 255, refuse)
    const text = headerText(value)
    if (text === undefined) refuse(path, 'must be a string, a finite number, a boolean or a date')
    else {
      checkText(path, text, 0, 65536, refuse)
      checked.push([name, text])
    }
  }
  return Object.fromEntries(checked)
}

function headerText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean' || typeof value === 'bigint') return String(value)
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : undefined
  if (value instanceof Date) return isUsualDate(value) ? value.toISOString() : undefined
  return undefined
}

function isUsualDate(value: unknown): boolean {
  return value instanceof Date && value.getTime() >= 0 && value.getUTCFullYear() <= 9999
}
