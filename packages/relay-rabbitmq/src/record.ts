import { crc32 } from 'node:zlib'
import { type OutboxEvent, readWireHeaders, type Rejection, wireHeaders, type WireEvent } from '@inorder/core'
import type { Message, Options } from 'amqplib'

/** A message read back: what a consumer needs to know, under the names of the event it was. */
export interface RabbitMqMessage extends WireEvent {
  /** The bytes as enqueued; null is a tombstone. */
  readonly payload: Buffer | null
}

/** Header of an event without a payload, whose body is as empty as that of an empty payload. */
const tombstoneName = 'outbox-tombstone'

const shortTextBytes = 255
/** A frame holds 128 KiB by default, and the table of headers must fit one with everything else about the message. */
const headerTableBytes = 60_000

/** The properties of an event's message. Values of headers are text: amqplib turns dates into nothing and refuses others. */
export function propertiesOf(event: OutboxEvent, mandatory: boolean): Options.Publish {
  const { eventId, type, contentType, createdAt, payload } = event
  return {
    persistent: true,
    mandatory,
    messageId: eventId,
    contentType,
    ...(type === null ? {} : { type }),
    timestamp: Math.floor(createdAt.getTime() / 1000),
    headers: { ...wireHeaders(event), ...(payload === null ? { [tombstoneName]: 'true' } : {}) },
  }
}

export function bodyOf({ payload }: OutboxEvent): Buffer {
  if (payload === null) return Buffer.alloc(0)
  return Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
}

/** What RabbitMQ would close the channel or the connection for, and with it the publishes of everybody else. */
export function refusalOf(event: OutboxEvent, routingKey: string, maxEventBytes: number): Rejection | undefined {
  const { payload, contentType, type } = event
  const bytes = payload?.byteLength ?? 0
  if (bytes > maxEventBytes) return { reason: `The payload has ${bytes} bytes, maxEventBytes is ${maxEventBytes}` }
  const short: [string, string | null][] = [
    ['routing key', routingKey],
    ['content type', contentType],
    ['type', type],
  ]
  for (const [what, text] of short) {
    const length = Buffer.byteLength(text ?? '')
    if (length > shortTextBytes)
      return { reason: `The ${what} has ${length} bytes, RabbitMQ takes ${shortTextBytes} at most` }
  }
  let table = 0
  for (const [name, value] of Object.entries(wireHeaders(event))) {
    if (name === 'CC' || name === 'BCC') return { reason: `The header ${name} would send copies to other queues` }
    const length = Buffer.byteLength(name)
    if (length > shortTextBytes)
      return {
        reason: `The name of the header ${name.slice(0, 40)}… has ${length} bytes, RabbitMQ takes ${shortTextBytes} at most`,
      }
    table += length + Buffer.byteLength(value) + 6
  }
  if (table <= headerTableBytes) return undefined
  return { reason: `The headers have ${table} bytes, RabbitMQ takes about ${headerTableBytes} at most` }
}

/** The shard of an event: the CRC-32 of its UTF-8 key modulo their number. Without a key it is spread by its event id. */
export function shardOf({ key, eventId }: OutboxEvent, shards: number): number {
  return crc32(key ?? eventId) % shards
}

/**
 * Reads a message back, as a consumer of amqplib gets it.
 *
 * @throws Error when it was not written by this publisher.
 */
export function decodeMessage({ content, properties }: Pick<Message, 'content' | 'properties'>): RabbitMqMessage {
  const { [tombstoneName]: tombstone, ...headers } = (properties.headers ?? {}) as Record<string, unknown>
  const texts = Object.entries(headers).map(([name, value]) => [name, String(value)] as const)
  return { ...readWireHeaders(Object.fromEntries(texts)), payload: tombstone === undefined ? content : null }
}
