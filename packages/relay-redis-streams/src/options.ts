import {
  choiceOption,
  flagOption,
  functionOption,
  nameOption,
  numberOption,
  optionProblems,
  type OptionTable,
  type OutboxEvent,
  refuseProblems,
  required,
} from '@inorder/core'
import { Redis, type RedisOptions } from 'ioredis'
import type { Trim } from './record.ts'

export interface RedisStreamsOptions {
  /**
   * Where Redis is: a URL (`redis:`, `rediss:` or the path of a socket, without query), connection options of ioredis,
   * or a client of yours. A client is never used itself, only where and as whom it connects. Required. Options that
   * change order or delivery are set by the publisher and refused here.
   */
  readonly connection: string | RedisOptions | Redis
  /** Name of the publisher in logs and in `CLIENT LIST`: letters, digits, `.`, `_` and `-`. Default `redis-streams`. */
  readonly name?: string
  /**
   * The stream of an event before sharding. Must be pure and cheap. Default: the topic. Events of one key in different
   * streams have no order between them for whoever reads the streams.
   */
  readonly stream?: (event: OutboxEvent) => string
  /**
   * Number of streams that a stream is spread over by key. Default 1, minimum 1, maximum 16,384 (the slots of a Redis
   * cluster). Each needs one consumer of its own; changing it needs an outbox and streams without a backlog.
   */
  readonly shards?: number
  /** Removes old entries at each append, read or not. Default: nothing is ever removed. */
  readonly trim?: Trim
  /**
   * Acknowledge only after so many replicas have the entries: WAIT after each append. Default: do not wait. `count`
   * from 1, `timeoutMs` from 1; choose it below the relay's publish timeout. Costs a round trip to the replicas, and
   * a shortfall is an unknown outcome, so the events are appended again.
   */
  readonly waitReplicas?: { readonly count: number; readonly timeoutMs: number }
  /**
   * Largest payload in bytes. Default 64 MiB, which is what the outbox table takes. Minimum 1, maximum 512 MiB, the
   * default of Redis's proto-max-bulk-len. A larger event fails at once.
   */
  readonly maxEventBytes?: number
  /**
   * Most events in one script call. Default 1,000, minimum 1, maximum 1,000: from 100 to 1,000 the throughput grew by
   * less than a third, and nobody else is served by Redis while the script runs.
   */
  readonly maxRun?: number
  /** How long opening a connection may take until it is usable, in milliseconds. Default 5,000, minimum 1. */
  readonly connectTimeoutMs?: number
  /**
   * `same-relay` makes sure that a publish that was given up on cannot land after its successors, and needs the
   * permission for CLIENT LIST and CLIENT KILL. `none` does without both. Default `same-relay`.
   */
  readonly fence?: 'same-relay' | 'none'
  /**
   * How long a publish that was given up on waits for the fence before it answers, in milliseconds. Default 500,
   * minimum 1; keep it below the relay's grace of 1,000. Later publishes wait for the fence however long it takes.
   */
  readonly fenceTimeoutMs?: number
}

/** The options with their defaults, and a way to make a client that cannot resend, queue or reorder. */
export interface Settings {
  readonly client: (clientName: string) => Redis
  readonly name: string
  readonly stream: (event: OutboxEvent) => string
  readonly shards: number
  readonly trim: Trim | undefined
  readonly waitReplicas: { readonly count: number; readonly timeoutMs: number } | undefined
  readonly maxEventBytes: number
  readonly maxRun: number
  readonly connectTimeoutMs: number
  readonly fence: 'same-relay' | 'none'
  readonly fenceTimeoutMs: number
}

/**
 * What the publisher must decide itself. The client may not resend (`autoResendUnfulfilledCommands` would, and false
 * hangs on ioredis 6.0.0, so what stops it is that a session never reconnects and that no command has a retry), may
 * not queue while offline, and may not join commands of several lanes.
 */
const safeOptions = {
  lazyConnect: true,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: true,
  enableAutoPipelining: false,
  enableReadyCheck: true,
  keyPrefix: '',
  readOnly: false,
  monitor: false,
  role: 'master',
  replyMapping: 'legacy',
  stringNumbers: false,
  retryStrategy: null,
  reconnectOnError: null,
} as const satisfies RedisOptions

/** Where to connect, as whom, and how the socket behaves: everything of ioredis that cannot change order. */
const connectionOptions: ReadonlySet<string> = new Set([
  'host',
  'port',
  'path',
  'family',
  'tls',
  'username',
  'password',
  'db',
  'protocol',
  'connectTimeout',
  'disconnectTimeout',
  'keepAlive',
  'noDelay',
  'maxLoadingRetryTime',
  'disableClientInfo',
  'clientInfoTag',
  'sentinels',
  'name',
  'natMap',
  'sentinelUsername',
  'sentinelPassword',
  'sentinelTLS',
  'enableTLSForSentinelMode',
  'sentinelRetryStrategy',
  'sentinelReconnectStrategy',
  'sentinelCommandTimeout',
  'sentinelMaxConnections',
  'updateSentinels',
  'failoverDetector',
])

/**
 * Checks the options and fills in the defaults. Opens nothing.
 *
 * @throws OutboxError OPTIONS_INVALID with one problem per option.
 */
export function settingsOf(options: RedisStreamsOptions): Settings {
  const problems = optionProblems(options, table)
  const given = options.connection as RedisStreamsOptions['connection'] | undefined
  const clientOptions =
    given === undefined ? {} : connectionOf(given, (path, message) => problems.push({ path, message }))
  refuseProblems('redisStreamsPublisher', problems)
  return {
    client: (connectionName) => new Redis({ ...clientOptions, ...safeOptions, connectionName }),
    name: options.name ?? 'redis-streams',
    stream: options.stream ?? ((event) => event.topic),
    shards: options.shards ?? 1,
    trim: options.trim,
    waitReplicas: options.waitReplicas,
    maxEventBytes: options.maxEventBytes ?? 64 * 1024 * 1024,
    maxRun: options.maxRun ?? 1000,
    connectTimeoutMs: options.connectTimeoutMs ?? 5000,
    fence: options.fence ?? 'same-relay',
    fenceTimeoutMs: options.fenceTimeoutMs ?? 500,
  }
}

// The largest delay that a timer of Node takes.
const maxTimerMs = 2 ** 31 - 1
const duration = numberOption({ min: 1, max: maxTimerMs })

const table: OptionTable = {
  // Looked at by itself, so that a message never shows a URL with a password.
  connection: required({ check: () => undefined }),
  name: nameOption(),
  stream: functionOption(),
  shards: numberOption({ min: 1, max: 16_384 }),
  trim: {
    check(value) {
      const wrong = partsOf(
        value,
        'olderThanMs' in Object(value) ? { olderThanMs: duration } : { maxLength: duration, approximate: flagOption() },
        ['approximate'],
      )
      return wrong === undefined ? undefined : `must be { maxLength, approximate? } or { olderThanMs }: ${wrong}`
    },
  },
  waitReplicas: {
    check(value) {
      const wrong = partsOf(value, { count: numberOption({ min: 1 }), timeoutMs: duration }, [])
      return wrong === undefined ? undefined : `must be { count, timeoutMs }: ${wrong}`
    },
  },
  maxEventBytes: numberOption({ min: 1, max: 512 * 1024 * 1024 }),
  maxRun: numberOption({ min: 1, max: 1000 }),
  connectTimeoutMs: duration,
  fence: choiceOption('same-relay', 'none'),
  fenceTimeoutMs: duration,
}

type Refuse = (path: string, message: string) => void

function connectionOf(connection: unknown, refuse: Refuse): RedisOptions {
  if (typeof connection === 'string') {
    if (!/^(rediss?:\/\/|\/)/.test(connection) || connection.includes('?')) {
      // The value is not shown: it may hold a password.
      refuse(
        'connection',
        'must be a redis:// or rediss:// URL or the path of a socket, without query; give options as an object',
      )
      return {}
    }
    return parseUrl(connection, refuse)
  }
  if (typeof connection !== 'object' || connection === null) {
    refuse('connection', `must be a URL, ioredis options or an ioredis client, got ${show(connection)}`)
    return {}
  }
  if ('isCluster' in connection && connection.isCluster === true) {
    refuse(
      'connection',
      'must not be a cluster client: ioredis sends the commands of a lost connection again in any order',
    )
    return {}
  }
  // Of a client only what it was told matters: its defaults are unsafe, and are replaced.
  if (connection instanceof Redis || 'sendCommand' in connection) {
    const { options } = connection as Redis
    for (const name of ['keyPrefix', 'readOnly', 'monitor', 'Connector'] as const) {
      if (options[name]) refuse(`connection.${name}`, `must not be set on the client, got ${show(options[name])}`)
    }
    return pick(options)
  }
  for (const [name, value] of Object.entries(connection)) {
    if (connectionOptions.has(name) || value === undefined) continue
    const safe = Object.hasOwn(safeOptions, name) ? safeOptions[name as keyof typeof safeOptions] : undefined
    if (safe === undefined)
      refuse(`connection.${name}`, 'is not a connection option; the publisher decides it or ioredis does not know it')
    else if (value !== safe) refuse(`connection.${name}`, `must be ${show(safe)} or left out, got ${show(value)}`)
  }
  return pick(connection)
}

/** Lets ioredis itself read the URL. The client that is made for it never connects. */
function parseUrl(url: string, refuse: Refuse): RedisOptions {
  try {
    return pick(new Redis(url, safeOptions).options)
  } catch {
    refuse('connection', 'is not a URL that ioredis can read')
    return {}
  }
}

function pick(options: object): RedisOptions {
  return Object.fromEntries(
    Object.entries(options).filter(([name, value]) => connectionOptions.has(name) && value !== undefined),
  )
}

/** What is wrong with an option that has parts of its own, all of which must be given unless they are optional. */
function partsOf(value: unknown, parts: OptionTable, optional: readonly string[]): string | undefined {
  if (typeof value !== 'object' || value === null) return 'is not an object'
  const rules = Object.entries(parts).map(
    ([name, rule]) => [name, optional.includes(name) ? rule : required(rule)] as const,
  )
  const problems = optionProblems(value, Object.fromEntries(rules))
  return problems.length === 0 ? undefined : problems.map(({ path, message }) => `${path} ${message}`).join(', ')
}

function show(value: unknown): string {
  if (typeof value === 'function') return 'a function'
  return typeof value === 'string' ? `'${value}'` : JSON.stringify(value)
}
