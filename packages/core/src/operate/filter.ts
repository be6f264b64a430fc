import { OutboxError, type Problem } from '../contract/errors.ts'
import {
  choiceOption,
  type OptionRule,
  type OptionTable,
  optionProblems,
  refuseProblems,
  textOption,
} from '../contract/option-table.ts'
import { isUuid } from '../contract/uuid.ts'
import type { EventCriteria } from '../storage/event-filter.ts'

/**
 * Which events a verb is about. Everything that is given must hold; times from (inclusive) and to (exclusive) are
 * compared with the database's. A filter without a field is refused.
 */
export interface CommonFilter {
  /** Row ids as decimal text, at most 10,000. Not together with `eventIds`. */
  readonly ids?: readonly string[]
  /** Event ids, at most 10,000. */
  readonly eventIds?: readonly string[]
  readonly topic?: string
  readonly key?: string
  /** The 64-bit number of a lane as decimal text, as it stands in the column `lane`. */
  readonly lane?: string
  readonly type?: string
  readonly createdAfter?: Date
  readonly createdBefore?: Date
}

/** What the last counted failure of an event was. */
export interface FailureFilter {
  /** Text that the last error contains, upper and lower case as it is. */
  readonly cause?: string
  /** Outcome of the last counted failure: `rejected`, `permanent`, `unknown`. */
  readonly outcome?: string
}

export interface FailedFilter extends FailureFilter {
  /** When the event was given up. Only failed and held events have such a time. */
  readonly failedAfter?: Date
  readonly failedBefore?: Date
}

export interface RequeueFilter extends CommonFilter, FailedFilter {
  /** Default: both. */
  readonly status?: OneOrMore<'failed' | 'held'>
}

export interface DiscardFilter extends CommonFilter, FailedFilter {
  /** Required unless the events are named by id: what is discarded does not come back. */
  readonly status?: OneOrMore<'pending' | 'scheduled' | 'held' | 'failed'>
}

export interface RescheduleFilter extends CommonFilter, FailureFilter {
  /** Default: both. */
  readonly status?: OneOrMore<'pending' | 'scheduled'>
}

export interface ReplayFilter extends CommonFilter {
  readonly publishedFrom?: Date
  /** Default: the moment at which the replay begins. */
  readonly publishedTo?: Date
}

type OneOrMore<T> = T | readonly T[]

export type EventFilter = RequeueFilter | DiscardFilter | RescheduleFilter | ReplayFilter

/** Every field that some verb takes. */
interface AnyFilter extends CommonFilter, FailedFilter, Omit<ReplayFilter, keyof CommonFilter> {
  readonly status?: OneOrMore<string>
}

export interface ReadFilter {
  readonly criteria: EventCriteria
  /** Events that were named one by one. */
  readonly given: { readonly column: 'id' | 'event_id'; readonly values: readonly string[] } | undefined
  /** What the audit keeps. */
  readonly text: string
}

/** Ids in one call: they travel with every batch and stand in the audit. */
const maxGiven = 10_000
const largestId = 2n ** 63n - 1n

const idRule = eachOf('decimal row ids', (value) => /^\d{1,19}$/.test(value) && BigInt(value) <= largestId)
const eventIdRule = eachOf('UUIDs', isUuid)

const laneRule: OptionRule = {
  check: (value) =>
    typeof value === 'string' && /^-?\d{1,19}$/.test(value) && BigInt.asIntN(64, BigInt(value)) === BigInt(value)
      ? undefined
      : 'must be a 64-bit number as decimal text',
}

/** What names a topic, a key or a lane. */
export const laneTable: Readonly<Record<'topic' | 'key' | 'lane', OptionRule>> = {
  topic: textOption({ maxBytes: 255 }),
  key: keyRule(),
  lane: laneRule,
}

export const dateRule: OptionRule = {
  check(value) {
    const year = value instanceof Date ? value.getUTCFullYear() : Number.NaN
    return year >= 1970 && year <= 9999 ? undefined : 'must be a valid Date between the years 1970 and 9999'
  },
}

const commonTable: OptionTable = {
  ids: idRule,
  eventIds: eventIdRule,
  ...laneTable,
  type: textOption({ maxBytes: 255 }),
  createdAfter: dateRule,
  createdBefore: dateRule,
}
const failureTable: OptionTable = { cause: textOption({ maxBytes: 1024 }), outcome: textOption({ maxBytes: 255 }) }
const failedTable: OptionTable = { ...failureTable, failedAfter: dateRule, failedBefore: dateRule }

/** What a verb may be asked about. */
export interface FilterRules {
  readonly table: OptionTable
  /** The states that the verb works on. */
  readonly statuses: readonly string[]
}

export const requeueRules: FilterRules = rules({ ...commonTable, ...failedTable }, ['failed', 'held'])
export const discardRules: FilterRules = rules({ ...commonTable, ...failedTable }, [
  'pending',
  'scheduled',
  'held',
  'failed',
])
export const rescheduleRules: FilterRules = rules({ ...commonTable, ...failureTable }, ['pending', 'scheduled'])
export const replayRules: FilterRules = {
  table: { ...commonTable, publishedFrom: dateRule, publishedTo: dateRule },
  statuses: ['published'],
}

const ranges = [
  ['createdAfter', 'createdBefore'],
  ['failedAfter', 'failedBefore'],
  ['publishedFrom', 'publishedTo'],
] as const satisfies readonly (readonly [keyof AnyFilter, keyof AnyFilter])[]

/** Everything that is wrong with a filter. */
function filterProblems(filter: EventFilter, { table }: FilterRules): Problem[] {
  const problems = optionProblems(filter, table).map(({ path, message }) => ({
    path: path === 'options' ? 'filter' : `filter.${path}`,
    message,
  }))
  if (problems.length > 0) return problems
  const given: AnyFilter = filter
  if (given.ids !== undefined && given.eventIds !== undefined)
    problems.push({ path: 'filter.eventIds', message: 'cannot be given together with ids' })
  for (const [from, to] of ranges) {
    const [first, last] = [given[from], given[to]]
    if (first !== undefined && last !== undefined && first >= last)
      problems.push({ path: `filter.${to}`, message: `must be later than ${from}` })
  }
  return problems
}

/**
 * Reads a filter that has no problems; the verb's own problems are refused together with the filter's.
 *
 * @throws OutboxError OPTIONS_INVALID with every problem in one error, FILTER_EMPTY when nothing is asked for.
 */
export function readFilter(
  verb: string,
  filter: EventFilter,
  filterRules: FilterRules,
  problems: readonly Problem[] = [],
): ReadFilter {
  refuseProblems(verb, [...filterProblems(filter, filterRules), ...problems])
  const given: AnyFilter = filter
  if (Object.values(given).every((value) => value === undefined)) {
    throw new OutboxError(
      'FILTER_EMPTY',
      `${verb}: the filter is empty, and nothing was changed. Name what you mean, as in { topic: 'orders' }; the fields are ${Object.keys(filterRules.table).join(', ')}.`,
    )
  }
  const { status } = given
  return {
    criteria: {
      statuses: status === undefined ? filterRules.statuses : typeof status === 'string' ? [status] : status,
      topic: given.topic ?? null,
      key: given.key ?? null,
      lane: given.lane ?? null,
      type: given.type ?? null,
      cause: given.cause ?? null,
      outcome: given.outcome ?? null,
      failedAfter: isoOf(given.failedAfter),
      failedBefore: isoOf(given.failedBefore),
      createdAfter: isoOf(given.createdAfter),
      createdBefore: isoOf(given.createdBefore),
      publishedFrom: isoOf(given.publishedFrom),
      publishedTo: isoOf(given.publishedTo),
      waits: null,
    },
    given: namedIn(given),
    text: JSON.stringify(filter),
  }
}

function namedIn({ ids, eventIds }: CommonFilter): ReadFilter['given'] {
  if (ids !== undefined) return { column: 'id', values: ids }
  return eventIds === undefined ? undefined : { column: 'event_id', values: eventIds }
}

function isoOf(date: Date | undefined): string | null {
  return date?.toISOString() ?? null
}

function rules(table: OptionTable, statuses: readonly string[]): FilterRules {
  const one = choiceOption(...statuses)
  const status: OptionRule = {
    check(value) {
      const values: readonly unknown[] = Array.isArray(value) ? value : [value]
      return values.length === 0
        ? 'must not be an empty list'
        : values.map((each) => one.check(each)).find((wrong) => wrong !== undefined)
    },
  }
  return { table: { ...table, status }, statuses }
}

function eachOf(what: string, isOne: (value: string) => boolean): OptionRule {
  return {
    check: (value) =>
      Array.isArray(value) &&
      value.length > 0 &&
      value.length <= maxGiven &&
      value.every((each) => typeof each === 'string' && isOne(each))
        ? undefined
        : `must be a list of 1 to ${String(maxGiven)} ${what}, as text`,
  }
}

/** The empty string is a key like any other. */
function keyRule(): OptionRule {
  const text = textOption({ maxBytes: 1024 })
  return { check: (value) => (value === '' ? undefined : text.check(value)) }
}
