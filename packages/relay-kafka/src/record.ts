import { type OutboxEvent, readWireHeaders, wireHeaders, type WireEvent } from '@inorder/core'
import type { Message } from 'kafkajs'

/** A record read back: what a consumer needs to know, under the names of the event it was. */
export interface KafkaRecord extends WireEvent {
  /** The bytes as enqueued; null is a tombstone. */
  readonly payload: Buffer | null
}

/**
 * Bytes that a record of the version 2 format has at most beside its key, value and headers: lengths and deltas as
 * variable integers. A header has two lengths of at most five bytes.
 */
const recordOverhead = 40
const headerOverhead = 10

/**
 * The record of an event. A null payload stays null, a tombstone; a null key stays null. The time of the record is that of
 * its publication, as Kafka's retention expects: with the time of the event an old one could be deleted before it is read.
 */
export function recordOf(event: OutboxEvent, partition: number): Message {
  return { key: event.key, value: bytesOf(event.payload), partition, headers: wireHeaders(event) }
}

/** Bytes that an event takes in a record batch, before compression. Never less than it takes. */
export function recordBytes(event: OutboxEvent): number {
  let bytes = recordOverhead + (event.payload?.byteLength ?? 0)
  if (event.key !== null) bytes += Buffer.byteLength(event.key)
  for (const [name, value] of Object.entries(wireHeaders(event)))
    bytes += headerOverhead + Buffer.byteLength(name) + Buffer.byteLength(value)
  return bytes
}

/**
 * Reads a record back, as a consumer of kafkajs gets it.
 *
 * @throws Error when it was not written by this publisher.
 */
export function decodeRecord(message: {
  readonly value: Buffer | null
  readonly headers?: Readonly<Record<string, unknown>>
}): KafkaRecord {
  const headers = Object.entries(message.headers ?? {}).map(([name, value]) => [name, String(value)] as const)
  return { ...readWireHeaders(Object.fromEntries(headers)), payload: message.value }
}

/**
 * The partition of an event among so many, the same that the Java client gives a record with this key. An event without
 * a key is unordered and is spread by its event id.
 */
export function partitionOf(event: OutboxEvent, partitions: number): number {
  return (murmur2(Buffer.from(event.key ?? event.eventId)) & 0x7fffffff) % partitions
}

/** MurmurHash2 with the seed of Kafka's Java client, as a signed 32-bit number. */
export function murmur2(data: Uint8Array): number {
  const m = 0x5bd1e995
  let hash = 0x9747b28c ^ data.length
  const whole = data.length - (data.length % 4)
  for (let at = 0; at < whole; at += 4) {
    let k = byte(data, at) | (byte(data, at + 1) << 8) | (byte(data, at + 2) << 16) | (byte(data, at + 3) << 24)
    k = Math.imul(k, m)
    k = Math.imul(k ^ (k >>> 24), m)
    hash = Math.imul(hash, m) ^ k
  }
  const rest = data.length - whole
  if (rest === 3) hash ^= byte(data, whole + 2) << 16
  if (rest >= 2) hash ^= byte(data, whole + 1) << 8
  if (rest >= 1) hash = Math.imul(hash ^ byte(data, whole), m)
  hash = Math.imul(hash ^ (hash >>> 13), m)
  return hash ^ (hash >>> 15)
}

function byte(data: Uint8Array, at: number): number {
  return data[at] ?? 0
}

function bytesOf(payload: Uint8Array | null): Buffer | null {
  return payload === null ? null : Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
}
