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
import type { Options } from 'amqplib'
import { shardOf } from './record.ts'
import type { SessionSettings } from './session.ts'

export interface RabbitMqPublisherOptions {
  /** Where RabbitMQ is: a URL, connection options of amqplib, or a list of either that is tried in its order. Required. */
  readonly url: string | Options.Connect | readonly (string | Options.Connect)[]
  /** Options of the socket, such as those of TLS. */
  readonly socket?: Readonly<Record<string, unknown>>
  /** The exchange, which must exist; `''` is the default exchange. Required. */
  readonly exchange: string | ((event: OutboxEvent) => string)
  /**
   * The routing key of an event before sharding, the same for all events of a key. Default: its topic. It names a
   * destination together with the exchange, so it should have few values. At most 255 bytes.
   */
  readonly routingKey?: (event: OutboxEvent) => string
  /**
   * Number of queues that the keys of a routing key are spread over: `.n` is appended to it, n being the CRC-32 of the key
   * modulo their number. Default 1, which appends nothing.
   */
  readonly shards?: number
  /** Whether everything goes to one queue, so that it is in one order. Default false. */
  readonly oneQueue?: boolean
  /** Exchanges for `check` to look at before anything was published to them. Default: `exchange`, if it is a string. */
  readonly exchanges?: readonly string[]
  /**
   * Whether an event that no queue is bound for is a failure. Default true; a function decides by event. False is for
   * events that nobody needs to want: RabbitMQ acknowledges them and throws them away.
   */
  readonly mandatory?: boolean | ((event: OutboxEvent) => boolean)
  /** Name of the publisher in logs, of its connection and of its lock. Default `inorder`. */
  readonly name?: string
  /**
   * Largest payload in bytes. Default 16,711,680: the 16 MiB that RabbitMQ 4 takes by default, less 64 KiB. Minimum 1,
   * maximum 128 MiB. A larger event fails at once, because the server would close the channel for it.
   */
  readonly maxEventBytes?: number
  /** Most events of a key in one call. Default 100, minimum 1. */
  readonly maxRun?: number
  /**
   * Events of a key that wait for their confirm at once. Default 1: a queue can refuse an event and take the next, so only
   * then is the order of a key kept whatever happens. Minimum 1.
   */
  readonly maxRunInFlight?: number
  /** How long opening a connection may take until it is usable, in milliseconds. Default 5,000, minimum 1. */
  readonly connectTimeoutMs?: number
  /**
   * `same-relay` holds an exclusive queue, so that a new connection publishes only when the server has done with the one
   * before. Needs the permission to configure a queue with the publisher's name. `none` does without. Default `same-relay`.
   */
  readonly fence?: 'same-relay' | 'none'
}

const maxTimerMs = 2 ** 31 - 1
const mebibyte = 1024 * 1024

const table: OptionTable = {
  // Looked at by itself, so that a message never shows a URL with a password.
  url: required({ check: () => undefined }),
  socket: objectOption(),
  exchange: required({
    check: (value) =>
      typeof value === 'function' || isShortText(value)
        ? undefined
        : 'must be a name of at most 255 bytes, or a function',
  }),
  routingKey: functionOption(),
  shards: numberOption({ min: 1, max: 16_384 }),
  oneQueue: flagOption(),
  exchanges: {
    check: (value) => (Array.isArray(value) && value.every(isShortText) ? undefined : 'must be a list of names'),
  },
  mandatory: {
    check: (value) =>
      typeof value === 'boolean' || typeof value === 'function' ? undefined : 'must be true, false or a function',
  },
  name: nameOption(),
  maxEventBytes: numberOption({ min: 1, max: 128 * mebibyte }),
  maxRun: numberOption({ min: 1, max: 10_000 }),
  maxRunInFlight: numberOption({ min: 1, max: 10_000 }),
  connectTimeoutMs: numberOption({ min: 1, max: maxTimerMs }),
  fence: choiceOption('same-relay', 'none'),
}

function isShortText(value: unknown): boolean {
  return typeof value === 'string' && Buffer.byteLength(value) <= 255
}

/** The options with their defaults. */
export interface Settings extends SessionSettings {
  readonly exchange: (event: OutboxEvent) => string
  readonly routingKey: (event: OutboxEvent) => string
  readonly exchanges: readonly string[]
  readonly mandatory: (event: OutboxEvent) => boolean
  readonly alwaysMandatory: boolean
  readonly oneQueue: boolean
  readonly maxEventBytes: number
  readonly maxRun: number
  readonly maxRunInFlight: number
}

/**
 * Checks the options and fills in the defaults. Opens nothing.
 *
 * @throws OutboxError OPTIONS_INVALID with one problem per option.
 */
export function settingsOf(options: RabbitMqPublisherOptions): Settings {
  const problems = optionProblems(options, table)
  const { url, exchange, shards = 1, mandatory = true, routingKey = topicOf } = options
  const urls = Array.isArray(url) ? (url as readonly (string | Options.Connect)[]) : [url as string | Options.Connect]
  if (!(urls.length > 0 && urls.every(isAddress)))
    problems.push({ path: 'url', message: 'must be an amqp:// or amqps:// URL, connection options, or a list of them' })
  refuseProblems('rabbitMqPublisher', problems)
  return {
    urls,
    socket: options.socket ?? {},
    exchange: typeof exchange === 'function' ? exchange : () => exchange,
    routingKey: shards === 1 ? routingKey : (event) => `${routingKey(event)}.${shardOf(event, shards)}`,
    exchanges: options.exchanges ?? (typeof exchange === 'string' ? [exchange] : []),
    mandatory: typeof mandatory === 'function' ? mandatory : () => mandatory,
    alwaysMandatory: mandatory === true,
    oneQueue: options.oneQueue ?? false,
    name: options.name ?? 'inorder',
    maxEventBytes: options.maxEventBytes ?? 16 * mebibyte - 65_536,
    maxRun: options.maxRun ?? 100,
    maxRunInFlight: options.maxRunInFlight ?? 1,
    connectTimeoutMs: options.connectTimeoutMs ?? 5000,
    fence: options.fence ?? 'same-relay',
  }
}

function topicOf({ topic }: OutboxEvent): string {
  return topic
}

function isAddress(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return true
  return typeof value === 'string' && /^amqps?:\/\//.test(value) && URL.canParse(value)
}
