import {
  checkOptions,
  choiceOption,
  flagOption,
  functionOption,
  listOption,
  numberOption,
  objectOption,
  type OptionTable,
  optionProblems,
  refuseProblems,
  required,
  textOption,
} from './contract/option-table.ts'
import type { Problem } from './contract/errors.ts'
import type { EventRegistry, EventSchemas } from './contract/event-registry.ts'
import type { Publisher } from './contract/publisher.ts'
import type { RelaySignal, SignalEvent } from './contract/signals.ts'
import type { SqlClient } from './contract/sql-client.ts'
import type { Serialize } from './contract/event.ts'

/** Options of an outbox. */
export interface OutboxOptions<Tx, Db, Given extends Tx = Tx, Schemas extends EventSchemas = never> {
  /** The PostgreSQL client: `fromPg(pool)`. */
  readonly client: SqlClient<Tx, Db, Given>
  /** Schema that holds the tables, at most 63 bytes. Default `outbox`. A second outbox is a second schema. */
  readonly schema?: string
  /**
   * Largest payload in bytes that `enqueue` takes. Default 1 MiB, minimum 1, at most 64 MiB, which is what the table
   * takes. The brokers' own limits are lower: SQS 1 MiB, Kafka 1 MB.
   */
  readonly maxPayloadBytes?: number
  /** Turns a payload that is neither bytes nor null into what is stored. Default: strict JSON. */
  readonly serialize?: Serialize
  /**
   * Every event that may be enqueued, from `defineEvents`: its schema, key and topic. Default: any event, whose topic
   * and key the call names. Costs two validations of each event, one of them of what was stored.
   */
  readonly events?: EventRegistry<Schemas>
  /**
   * Whether writers of a key wait for each other until commit, so that the lower id always commits first: for keys that
   * nothing else in the transaction serialises, such as the lock on the order's own row. Default false.
   *
   * Every writer must do it. `migrate` stores the answer for the SQL function `enqueue`; a plain INSERT calls
   * `outbox.lock_keys(topics, keys)` in a statement before it, or is not in line. Under REPEATABLE READ and SERIALIZABLE
   * the order holds too, but what the transaction reads may be older than what the writer before it committed.
   *
   * It costs a statement per call, and waiting: for transactions that hold the same key, for 1 in 1,024 of those that
   * hold another one, and with `total` ordering for every one. Keys that one call writes are locked in one order; two
   * transactions that lock keys in several calls, crosswise, deadlock as with any row lock, and one of them gets 40P01.
   */
  readonly serializeWrites?: boolean
}

/** Options of a relay. */
export interface RelayOptions {
  /** The broker side: a publisher of an adapter. */
  readonly publisher: Publisher
  /** Relays of one group share the work; groups with other topics stand beside each other. Default `default`. */
  readonly group?: string
  /** Topics of the group. Default: all. A topic in two groups is refused at start. */
  readonly topics?: readonly string[]
  /**
   * Shortest wait between two finds, in ms. Default 10, minimum 1. Half of it is the usual delay without a wake-up; an
   * idle relay slows down to `pollMaxMs`.
   */
  readonly pollMinMs?: number
  /** Longest wait between two finds, in ms. Default 200, minimum 1: five statements a second while idle. */
  readonly pollMaxMs?: number
  /** Arrivals in one find. Default and maximum 1,000, minimum 1. Reaching it makes the relay sweep. */
  readonly findLimit?: number
  /** Events of one key that are published in one call. Default and maximum 100, minimum 1: strictly head by head. */
  readonly maxRun?: number
  /** Payload bytes of one call. Default 1 MiB, minimum 1. One larger event still goes alone. */
  readonly maxRunBytes?: number
  /** Events in flight in this relay. Default 10,000, minimum 1. Bounds memory, whatever the backlog is. */
  readonly maxInFlight?: number
  /**
   * Payload bytes in flight in this relay, beside one event larger than half of it or than four runs. Default 64 MiB,
   * minimum 1.
   */
  readonly maxInFlightBytes?: number
  /** Events in flight to one destination. Default a quarter of `maxInFlight`, so that one that hangs leaves room. */
  readonly maxInFlightPerDestination?: number
  /** How long a publish may take, in ms. Default 5,000, minimum 1. After it the outcome is unknown. */
  readonly publishTimeoutMs?: number
  /** How long the publisher may take to give up after that, in ms. Default 1,000. After it the publisher is replaced. */
  readonly publishGraceMs?: number
  /** How long a relay that stopped renewing keeps its slots, in ms. Default 10,000, minimum 300. Renewed every third. */
  readonly leaseMs?: number
  /** First wait after a counted failure, in ms. Default 1,000. 0 retries at the next find. */
  readonly backoffBaseMs?: number
  /** Longest wait after a counted failure, in ms. Default 60,000. */
  readonly backoffCapMs?: number
  /** Counted failures until an event is given up. Default 10, minimum 1. Infinity never gives up: the strict mode. */
  readonly maxAttempts?: number
  /** After the last attempt: `continue` lets the key go on without the event (default), `hold` stops the key. */
  readonly onExhausted?: 'continue' | 'hold'
  /** First pause of a destination that takes nothing, in ms. Default 100. It doubles up to `breakerMaxMs`. */
  readonly breakerMinMs?: number
  /** Longest pause of a destination that takes nothing, in ms. Default 2,000. */
  readonly breakerMaxMs?: number
  /**
   * How long a published event stays for audit and replay, in ms. Default 7 days, minimum 0: it is deleted as soon as it
   * is acknowledged, which also forgets its id, so that a second enqueue of it is a new event. Infinity keeps everything.
   */
  readonly retainPublishedMs?: number
  /** How often a slice of the endless background sweep runs, in ms. Default 1,000, minimum 10. */
  readonly sweepIntervalMs?: number
  /**
   * A statement that takes longer is given up with its connection, in ms. Default 30,000, minimum 100. So long, at most, a
   * relay stands still whose session the network forgot without telling anyone: it keeps its keys, because its lease is
   * renewed over another session, and `health().sinceLastFindMs` grows. A shorter one also ends statements that are only
   * slow, on a server under load.
   */
  readonly statementTimeoutMs?: number
  /** Whether to listen for wake-ups of other processes. Default true. A relay that cannot listen just polls. */
  readonly listen?: boolean
  /** Called when an event has failed for good or is held: page somebody. What it throws is reported, not raised. */
  readonly onFailed?: (event: SignalEvent, cause: unknown) => void | Promise<void>
  /** Called with everything that the relay does. Must be quick and must not throw. */
  readonly onSignal?: (signal: RelaySignal) => void
  /** Source of the jitter, for tests that need to repeat. Default Math.random. */
  readonly random?: () => number
}

const mebibyte = 1024 * 1024
/** A timer holds no more, 24.8 days: with a longer time it would fire at once. */
const longestMs = 2 ** 31 - 1
/** A hundred years: what a timestamp minus an interval holds without thought. */
const longestRetentionMs = 100 * 365 * 24 * 3600 * 1000
const ms = (min: number): ReturnType<typeof numberOption> => numberOption({ min, max: longestMs, integer: false })

const outboxTable: OptionTable = {
  client: required(objectOption('session', 'transaction', 'connect')),
  schema: textOption({ maxBytes: 63 }),
  maxPayloadBytes: numberOption({ min: 1, max: 64 * mebibyte }),
  serialize: functionOption(),
  events: objectOption('definitions', 'parse', 'decode'),
  serializeWrites: flagOption(),
}

const relayTable: OptionTable = {
  publisher: required(objectOption('name', 'capabilities', 'connect', 'destination', 'publish', 'check', 'close')),
  group: textOption({ maxBytes: 255 }),
  topics: listOption(textOption({ maxBytes: 255 })),
  pollMinMs: ms(1),
  pollMaxMs: ms(1),
  findLimit: numberOption({ min: 1, max: 1000 }),
  maxRun: numberOption({ min: 1, max: 100 }),
  maxRunBytes: numberOption({ min: 1 }),
  maxInFlight: numberOption({ min: 1, max: 1_000_000 }),
  maxInFlightBytes: numberOption({ min: 1 }),
  maxInFlightPerDestination: numberOption({ min: 1 }),
  publishTimeoutMs: ms(1),
  publishGraceMs: ms(0),
  leaseMs: ms(300),
  backoffBaseMs: ms(0),
  backoffCapMs: ms(0),
  maxAttempts: numberOption({ min: 1, max: 2147483647, infinite: true }),
  onExhausted: choiceOption('continue', 'hold'),
  breakerMinMs: ms(1),
  breakerMaxMs: ms(1),
  retainPublishedMs: numberOption({ min: 0, max: longestRetentionMs, integer: false, infinite: true }),
  sweepIntervalMs: ms(10),
  statementTimeoutMs: ms(100),
  listen: flagOption(),
  onFailed: functionOption(),
  onSignal: functionOption(),
  random: functionOption(),
}

/** What a relay reckons with: with nonsense here it would stand still and say nothing. */
const capabilityTable: OptionTable = {
  maxEventBytes: required(numberOption({ min: 1, infinite: true })),
  maxRun: required(numberOption({ min: 1, infinite: true })),
  dedupeWindowMs: required(numberOption({ min: 0, integer: false, infinite: true })),
}

export type OutboxSettings<Tx, Db, Given extends Tx, Schemas extends EventSchemas> = OutboxOptions<
  Tx,
  Db,
  Given,
  Schemas
> & {
  readonly schema: string
  readonly maxPayloadBytes: number
}

export function readOutboxOptions<Tx, Db, Given extends Tx, Schemas extends EventSchemas = never>(
  given: OutboxOptions<Tx, Db, Given, Schemas>,
): OutboxSettings<Tx, Db, Given, Schemas> {
  checkOptions('createOutbox', given, outboxTable)
  return { ...given, schema: given.schema ?? 'outbox', maxPayloadBytes: given.maxPayloadBytes ?? mebibyte }
}

export interface RelaySettings extends Required<Omit<RelayOptions, 'topics' | 'onFailed' | 'onSignal'>> {
  readonly topics: readonly string[] | null
  readonly onFailed: RelayOptions['onFailed'] | undefined
  readonly onSignal: RelayOptions['onSignal'] | undefined
}

export function readRelayOptions(options: RelayOptions): RelaySettings {
  const problems: Problem[] = optionProblems(options, relayTable)
  if (problems.length === 0) problems.push(...capabilityProblems(options.publisher))
  // A copy, because what is no object has no members to read and is refused with the rest below.
  const given: RelayOptions = { ...options }
  const maxInFlight = given.maxInFlight ?? 10_000
  const settings: RelaySettings = {
    publisher: given.publisher,
    group: given.group ?? 'default',
    topics: given.topics ?? null,
    pollMinMs: given.pollMinMs ?? 10,
    pollMaxMs: given.pollMaxMs ?? atLeast(200, given.pollMinMs),
    findLimit: given.findLimit ?? 1000,
    maxRun: given.maxRun ?? 100,
    maxRunBytes: given.maxRunBytes ?? mebibyte,
    maxInFlight,
    maxInFlightBytes: given.maxInFlightBytes ?? 64 * mebibyte,
    maxInFlightPerDestination: given.maxInFlightPerDestination ?? Math.ceil(atLeast(1, maxInFlight) / 4),
    publishTimeoutMs: given.publishTimeoutMs ?? 5000,
    publishGraceMs: given.publishGraceMs ?? 1000,
    leaseMs: given.leaseMs ?? 10_000,
    backoffBaseMs: given.backoffBaseMs ?? 1000,
    backoffCapMs: given.backoffCapMs ?? atLeast(60_000, given.backoffBaseMs),
    maxAttempts: given.maxAttempts ?? 10,
    onExhausted: given.onExhausted ?? 'continue',
    breakerMinMs: given.breakerMinMs ?? 100,
    breakerMaxMs: given.breakerMaxMs ?? atLeast(2000, given.breakerMinMs),
    retainPublishedMs: given.retainPublishedMs ?? 7 * 24 * 3600 * 1000,
    sweepIntervalMs: given.sweepIntervalMs ?? 1000,
    statementTimeoutMs: given.statementTimeoutMs ?? 30_000,
    listen: given.listen ?? true,
    onFailed: given.onFailed,
    onSignal: given.onSignal,
    random: given.random ?? Math.random,
  }
  problems.push(
    ...tooSmall('pollMaxMs', settings.pollMaxMs, 'pollMinMs', settings.pollMinMs),
    ...tooSmall('backoffCapMs', settings.backoffCapMs, 'backoffBaseMs', settings.backoffBaseMs),
    ...tooSmall('breakerMaxMs', settings.breakerMaxMs, 'breakerMinMs', settings.breakerMinMs),
  )
  refuseProblems('createRelay', problems)
  return settings
}

/** What is no number is refused by its own rule, and must not throw before that. */
function atLeast(usual: number, least: unknown): number {
  return typeof least === 'number' ? Math.max(usual, least) : usual
}

function capabilityProblems({ capabilities }: Publisher): Problem[] {
  const { maxEventBytes, maxRun, dedupe } = (capabilities as Partial<Publisher['capabilities']> | undefined) ?? {}
  return optionProblems({ maxEventBytes, maxRun, dedupeWindowMs: dedupe?.windowMs }, capabilityTable).map(
    ({ path, message }) => ({ path: 'publisher', message: `its capability ${path} ${message}` }),
  )
}

/** Only numbers are compared; whatever else was given has its own problem. */
function tooSmall(name: string, value: unknown, other: string, least: unknown): Problem[] {
  return typeof value === 'number' && typeof least === 'number' && value < least
    ? [{ path: name, message: `must not be below ${other} (${String(least)}), got ${String(value)}` }]
    : []
}
