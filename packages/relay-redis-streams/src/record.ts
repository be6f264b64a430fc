import { crc32 } from 'node:zlib'
import { type OutboxEvent, type WireEvent, wireNames } from '@inorder/core'

/**
 * The fields of one stream entry, in the order in which they are written. `outbox-key`, `outbox-type` and `payload`
 * are left out when the event has none, because a stream field cannot be null: an absent `payload` is a tombstone, a
 * present one of 0 bytes an empty payload. The others are always there.
 */
export const entryFields: readonly string[] = [
  wireNames.eventId,
  wireNames.id,
  wireNames.topic,
  wireNames.key,
  wireNames.type,
  wireNames.attempt,
  wireNames.requeues,
  wireNames.createdAt,
  wireNames.contentType,
  'headers',
  'payload',
]

/** How much of a stream may be thrown away while it is written. Trimming also removes what nobody has read. */
export type Trim =
  | {
      /** Entries to keep at least. Minimum 1. */
      readonly maxLength: number
      /** Trim whole nodes of the stream only, so that a few more entries stay. Default true; false costs more. */
      readonly approximate?: boolean
    }
  | {
      /** Age in milliseconds from which entries are removed, by the clock of the Redis server. Minimum 1. */
      readonly olderThanMs: number
    }

/** An entry read back: what a consumer needs to know, under the names of the event it was. */
export interface StreamEntry extends WireEvent {
  /** The bytes as enqueued; null is a tombstone. */
  readonly payload: Buffer | null
}

/**
 * Appends the entries of one run to one stream, in order, and stops at the first that Redis refuses. So what is in
 * the stream is always a prefix of the run, which neither a pipeline nor MULTI would leave.
 *
 * KEYS[1] is the stream. ARGV[1] is the trim strategy ('', MAXLEN or MINID), ARGV[2] its operator, ARGV[3] its
 * threshold: entries, or an age in milliseconds. Then, for each entry, a mask with one digit per field (0 means
 * absent) and the values that are present. Returns the ids appended and, if one was refused, the error text.
 */
export const appendScript: string = `
local names = {${entryFields.map((name) => `'${name}'`).join(', ')}}
local head = {'XADD', KEYS[1]}
if ARGV[1] ~= '' then
  local threshold = ARGV[3]
  if ARGV[1] == 'MINID' then
    local now = redis.call('TIME')
    threshold = string.format('%.0f', math.max(0, now[1] * 1000 + math.floor(now[2] / 1000) - ARGV[3]))
  end
  head[3], head[4], head[5] = ARGV[1], ARGV[2], threshold
end
head[#head + 1] = '*'
local ids = {}
local at = 4
while at <= #ARGV do
  local mask = ARGV[at]
  at = at + 1
  local call = {unpack(head)}
  for i = 1, #names do
    if string.byte(mask, i) == 49 then
      call[#call + 1] = names[i]
      call[#call + 1] = ARGV[at]
      at = at + 1
    end
  end
  local reply = redis.pcall(unpack(call))
  if type(reply) == 'table' then return {ids, reply.err} end
  ids[#ids + 1] = reply
end
return {ids}
`

/** The arguments of the script for these events, after the stream's name. */
export function appendArguments(events: readonly OutboxEvent[], trim: Trim | undefined): (string | Buffer)[] {
  const args: (string | Buffer)[] = trimArguments(trim)
  for (const event of events) {
    const values = entryValues(event)
    args.push(values.map((value) => (value === null ? '0' : '1')).join(''))
    for (const value of values) if (value !== null) args.push(value)
  }
  return args
}

/** The value of each of `entryFields`; null means that the field is left out. Only strings and Buffers ever. */
export function entryValues(event: OutboxEvent): (string | Buffer | null)[] {
  return [
    event.eventId,
    event.id,
    event.topic,
    event.key,
    event.type,
    String(event.attempt),
    String(event.requeues),
    event.createdAt.toISOString(),
    event.contentType,
    JSON.stringify(event.headers),
    event.payload === null ? null : asBuffer(event.payload),
  ]
}

/**
 * Reads an entry back from the flat list of names and values that `xrangeBuffer` and `xreadgroupBuffer` return. The
 * string variants of these commands destroy payloads that are not UTF-8.
 *
 * @throws OutboxError never; a plain Error when the entry was not written by this publisher.
 */
export function decodeEntry(fields: readonly Buffer[]): StreamEntry {
  const values = new Map<string, Buffer>()
  for (let i = 0; i + 1 < fields.length; i += 2) values.set(String(fields[i]), fields[i + 1] ?? Buffer.alloc(0))
  const optional = (name: string): string | null => values.get(name)?.toString() ?? null
  const text = (name: string): string => {
    const value = optional(name)
    if (value === null) throw new Error(`Not an entry of this publisher: the field ${name} is missing`)
    return value
  }
  return {
    eventId: text(wireNames.eventId),
    id: text(wireNames.id),
    topic: text(wireNames.topic),
    key: optional(wireNames.key),
    type: optional(wireNames.type),
    attempt: Number(text(wireNames.attempt)),
    requeues: Number(text(wireNames.requeues)),
    createdAt: new Date(text(wireNames.createdAt)),
    contentType: text(wireNames.contentType),
    headers: JSON.parse(text('headers')) as Record<string, string>,
    payload: values.get('payload') ?? null,
  }
}

/**
 * The stream of an event: its base name, or with several shards `{base:n}`, where n is the CRC-32 of the UTF-8 key
 * modulo the number of shards. The braces are a hash tag, so that keys derived from a stream stay in its cluster slot.
 * An unordered event is spread by its event id.
 */
export function streamOf(event: OutboxEvent, base: string, shards: number): string {
  if (shards === 1) return base
  return `{${base}:${String(crc32(event.key ?? event.eventId) % shards)}}`
}

function trimArguments(trim: Trim | undefined): string[] {
  if (trim === undefined) return ['', '', '']
  if ('olderThanMs' in trim) return ['MINID', '~', String(trim.olderThanMs)]
  return ['MAXLEN', trim.approximate === false ? '=' : '~', String(trim.maxLength)]
}

/** ioredis writes a plain Uint8Array as its decimal text, so every payload must be a Buffer over the same bytes. */
function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
