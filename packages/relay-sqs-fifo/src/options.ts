import {
  choiceOption,
  nameOption,
  numberOption,
  objectOption,
  optionProblems,
  type OptionTable,
  type OutboxEvent,
  refuseProblems,
  required,
} from '@inorder/core'
import { SQSClient, type SQSClientConfig } from '@aws-sdk/client-sqs'
import type { Binary, Format } from './record.ts'

export interface SqsFifoPublisherOptions {
  /** A client of yours. It is shared and never destroyed. At most one of `client` and `config`. */
  readonly client?: SQSClient
  /** The configuration of a client that the publisher makes for itself, with timeouts that end. */
  readonly config?: SQSClientConfig
  /**
   * The queue: its name, URL or ARN, which ends with `.fifo`; or a function from the event to one, the same for all
   * events of a key. Required.
   */
  readonly queue: string | ((event: OutboxEvent) => string)
  /** Queues for `check` to look at before anything was sent to them. Default: `queue`, if it is a string. */
  readonly queues?: readonly string[]
  /** Name of the publisher in logs. Default `sqs-fifo`. */
  readonly name?: string
  /** One message group for each key, or one for all, in which everything is in one order. Default `key`. */
  readonly groupBy?: 'key' | 'queue'
  /**
   * How identity and headers travel: as message attributes, at most ten, the rest packed into the last; or in a body that
   * is a JSON object with `headers`, `payload` and `encoding`. Default `attributes`.
   */
  readonly format?: 'attributes' | 'structured'
  /**
   * What to do with a payload that SQS does not take: bytes that are no UTF-8, control characters, null or empty. `refuse`
   * fails the event at once and says where; `base64` sends it with the attribute `outbox-encoding`. Default `refuse`.
   */
  readonly binary?: 'refuse' | 'base64'
  /**
   * Largest message in bytes, body and attributes. Default and maximum 1,048,576, the limit of SQS; a queue's own
   * MaximumMessageSize may be lower. Minimum 1. A larger event fails at once.
   */
  readonly maxEventBytes?: number
  /** Most events of a key in one call; each is a request of its own. Default 10, minimum 1. */
  readonly maxRun?: number
  /** Most requests on their way to one queue at once. Default 16, minimum 1; the SDK opens 50 connections at most. */
  readonly concurrency?: number
}

const largestMessage = 1_048_576

const table: OptionTable = {
  client: objectOption('send', 'config'),
  config: objectOption(),
  queue: required({
    check(value) {
      if (typeof value === 'function') return undefined
      return isFifo(value) ? undefined : 'must be the name, URL or ARN of a queue that ends with .fifo, or a function'
    },
  }),
  queues: {
    check: (value) =>
      Array.isArray(value) && value.every(isFifo) ? undefined : 'must be a list of queues that end with .fifo',
  },
  name: nameOption(),
  groupBy: choiceOption('key', 'queue'),
  format: choiceOption('attributes', 'structured'),
  binary: choiceOption('refuse', 'base64'),
  maxEventBytes: numberOption({ min: 1, max: largestMessage }),
  maxRun: numberOption({ min: 1, max: 1000 }),
  concurrency: numberOption({ min: 1, max: 1000 }),
}

function isFifo(value: unknown): boolean {
  return typeof value === 'string' && value.endsWith('.fifo')
}

/** The options with their defaults. */
export interface Settings {
  /** A client to use, and what to do with it at the end. */
  readonly open: () => { readonly client: SQSClient; readonly end: () => void }
  readonly name: string
  /** Name, URL or ARN of the queue of an event. */
  readonly queue: (event: OutboxEvent) => string
  readonly queues: readonly string[]
  readonly oneGroup: boolean
  readonly format: Format
  readonly binary: Binary
  readonly maxEventBytes: number
  readonly maxRun: number
  readonly concurrency: number
}

/**
 * Checks the options and fills in the defaults. Opens nothing.
 *
 * @throws OutboxError OPTIONS_INVALID with one problem per option.
 */
export function settingsOf(options: SqsFifoPublisherOptions): Settings {
  const problems = optionProblems(options, table)
  const { client, config, queue } = options
  if (client !== undefined && config !== undefined)
    problems.push({ path: 'config', message: 'cannot be given together with client' })
  refuseProblems('sqsFifoPublisher', problems)
  return {
    open() {
      if (client !== undefined) return { client, end: () => undefined }
      const own = new SQSClient({ ...timeouts, ...config })
      return { client: own, end: () => own.destroy() }
    },
    name: options.name ?? 'sqs-fifo',
    queue: typeof queue === 'function' ? queue : () => queue,
    queues: options.queues ?? (typeof queue === 'string' ? [queue] : []),
    oneGroup: options.groupBy === 'queue',
    format: options.format ?? 'attributes',
    binary: options.binary ?? 'refuse',
    maxEventBytes: options.maxEventBytes ?? largestMessage,
    maxRun: options.maxRun ?? 10,
    concurrency: options.concurrency ?? 16,
  }
}

/**
 * By default a server that answers nothing keeps a call for fifteen minutes, and `requestTimeout` by itself writes a
 * warning only. Three attempts of the SDK are safe: the group has no other message on its way, and the id stays.
 */
const timeouts: SQSClientConfig = {
  maxAttempts: 3,
  requestHandler: { connectionTimeout: 3000, requestTimeout: 10_000, throwOnRequestTimeout: true },
}
