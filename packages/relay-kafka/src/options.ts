import {
  choiceOption,
  flagOption,
  functionOption,
  nameOption,
  numberOption,
  objectOption,
  optionProblems,
  type OptionTable,
  type OutboxEvent,
  refuseProblems,
  required,
} from '@inorder/core'
import kafkajs, { type KafkaConfig } from 'kafkajs'
import type { SessionSettings } from './session.ts'

const { CompressionCodecs, CompressionTypes } = kafkajs

const compressions = { none: 'None', gzip: 'GZIP', snappy: 'Snappy', lz4: 'LZ4', zstd: 'ZSTD' } as const

export interface KafkaPublisherOptions {
  /**
   * The configuration that `new Kafka` of kafkajs takes: brokers, TLS, SASL, client id. Required. The publisher makes
   * clients of its own, because a producer that somebody else uses as well loses acknowledged events.
   */
  readonly config: KafkaConfig
  /** Name of the publisher in logs. Default `kafka`. */
  readonly name?: string
  /** The Kafka topic of an event. Default: its topic. Pure; the same for all events of a key. */
  readonly topic?: (event: OutboxEvent) => string
  /**
   * Number of partitions that keys are spread over, where it should not be what the topic has: pinned, added partitions
   * move no key. Minimum 1, at most what every topic has. With 1 everything is in one order.
   */
  readonly partitions?: number
  /** Topics for `check` to look at before anything was published to them. Default: those that were. */
  readonly topics?: readonly string[]
  /**
   * Largest record in bytes: payload, key and headers. Default 1,000,000, a little less than the default of a topic's
   * `max.message.bytes` (1,048,588). Minimum 1, maximum 64 MiB. A larger event fails at once.
   */
  readonly maxEventBytes?: number
  /** Most bytes in one record batch. Default 1,000,000, minimum 1. An event that is larger goes alone. */
  readonly maxBatchBytes?: number
  /** Most events of a key in one batch. Default 1,000, minimum 1. */
  readonly maxRun?: number
  /** Compression of batches. Default `none`. All but gzip need a codec registered with kafkajs. */
  readonly compression?: keyof typeof compressions
  /**
   * Lets Kafka drop the repetition of a batch that the client sent again by itself. Default true. False is for brokers
   * that refuse it; it makes more duplicates, and loses nothing either.
   */
  readonly idempotent?: boolean
  /** How long opening a connection may take until it is usable, in milliseconds. Default 8,000, minimum 1. */
  readonly connectTimeoutMs?: number
  /** How long one request may take before the client tries again, in milliseconds. Default 5,000, minimum 100. */
  readonly requestTimeoutMs?: number
  /** How old the known number of partitions may get, in milliseconds. Default 60,000, minimum 1. */
  readonly metadataMaxAgeMs?: number
}

const maxTimerMs = 2 ** 31 - 1
const maxBytes = 64 * 1024 * 1024

const table: OptionTable = {
  config: required(objectOption()),
  name: nameOption(),
  topic: functionOption(),
  partitions: numberOption({ min: 1, max: 1_000_000 }),
  topics: {
    check(value) {
      const fits = Array.isArray(value) && value.every((topic) => typeof topic === 'string' && topic !== '')
      return fits ? undefined : 'must be a list of topic names'
    },
  },
  maxEventBytes: numberOption({ min: 1, max: maxBytes }),
  maxBatchBytes: numberOption({ min: 1, max: maxBytes }),
  maxRun: numberOption({ min: 1, max: 100_000 }),
  compression: choiceOption(...Object.keys(compressions)),
  idempotent: flagOption(),
  connectTimeoutMs: numberOption({ min: 1, max: maxTimerMs }),
  requestTimeoutMs: numberOption({ min: 100, max: maxTimerMs }),
  metadataMaxAgeMs: numberOption({ min: 1, max: maxTimerMs }),
}

/** Settings of the client that decide about order and loss, and that the publisher therefore makes itself. */
const ownSettings: ReadonlySet<string> = new Set(['retry', 'requestTimeout', 'enforceRequestTimeout'])

/** The options with their defaults. */
export interface Settings extends SessionSettings {
  readonly name: string
  readonly topic: (event: OutboxEvent) => string
  readonly partitions: number | undefined
  readonly topics: readonly string[]
  readonly maxEventBytes: number
  readonly maxBatchBytes: number
  readonly maxRun: number
  readonly connectTimeoutMs: number
  readonly metadataMaxAgeMs: number
}

/**
 * Checks the options and fills in the defaults. Opens nothing.
 *
 * @throws OutboxError OPTIONS_INVALID with one problem per option.
 */
export function settingsOf(options: KafkaPublisherOptions): Settings {
  const problems = optionProblems(options, table)
  const config = options.config as KafkaConfig | undefined
  for (const name of Object.keys(config ?? {}))
    if (ownSettings.has(name)) problems.push({ path: `config.${name}`, message: 'is decided by the publisher' })
  const { brokers } = config ?? {}
  if (config !== undefined && typeof brokers !== 'function' && !(Array.isArray(brokers) && brokers.length > 0))
    problems.push({ path: 'config.brokers', message: 'must be a list of host:port, or a function that gives one' })
  const compression = CompressionTypes[compressions[options.compression ?? 'none']]
  if (!hasCodec(compression))
    problems.push({ path: 'compression', message: 'needs a codec in CompressionCodecs of kafkajs' })
  refuseProblems('kafkaPublisher', problems)
  const { topic, partitions, topics = [] } = options
  return {
    config: options.config,
    name: options.name ?? 'kafka',
    topic: topic ?? ((event) => event.topic),
    partitions,
    topics,
    maxEventBytes: options.maxEventBytes ?? 1_000_000,
    maxBatchBytes: options.maxBatchBytes ?? 1_000_000,
    maxRun: options.maxRun ?? 1000,
    compression,
    idempotent: options.idempotent ?? true,
    connectTimeoutMs: options.connectTimeoutMs ?? 8000,
    requestTimeoutMs: options.requestTimeoutMs ?? 5000,
    metadataMaxAgeMs: options.metadataMaxAgeMs ?? 60_000,
  }
}

/** kafkajs puts a function that throws in the place of a codec that is not there. */
function hasCodec(type: number): boolean {
  if (type === 0) return true
  try {
    return (CompressionCodecs as Record<number, (() => unknown) | undefined>)[type]?.() !== undefined
  } catch {
    return false
  }
}
