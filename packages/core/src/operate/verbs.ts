import { discardStatement } from '../storage/discard-events.ts'
import { requeueStatement } from '../storage/requeue-events.ts'
import { rescheduleStatement } from '../storage/reschedule-events.ts'
import { clockStatement, readClock } from '../storage/clock.ts'
import type { OptionRule } from '../contract/option-table.ts'
import {
  dateRule,
  type DiscardFilter,
  discardRules,
  readFilter,
  type ReplayFilter,
  replayRules,
  type RequeueFilter,
  requeueRules,
  type RescheduleFilter,
  rescheduleRules,
} from './filter.ts'
import { runVerb } from './run-verb.ts'
import { type OperatorParts, withSession } from './session.ts'
import { type VerbOptions, verbProblems, type VerbReport } from './verb-options.ts'

export interface RescheduleOptions extends VerbOptions {
  /** The new time, or `now`. A time that has passed is now, once the relays have looked. */
  readonly at: Date | 'now'
}

export interface ReplayReport extends VerbReport {
  /** Where the replay ended. With it as `publishedTo`, a call that goes on does not meet what was replayed before. */
  readonly publishedTo: Date
}

export function requeue(parts: OperatorParts, filter: RequeueFilter, options: VerbOptions): Promise<VerbReport> {
  const read = readFilter('requeue', filter, requeueRules, verbProblems(options))
  return runVerb(
    parts,
    { name: 'requeue', filter: read, effect: 'puts in line', statement: requeueStatement(parts.names) },
    options,
  )
}

export async function replay(parts: OperatorParts, filter: ReplayFilter, options: VerbOptions): Promise<ReplayReport> {
  readFilter('replay', filter, replayRules, verbProblems(options))
  const publishedTo =
    filter.publishedTo ??
    (await withSession(parts, async (session) => readClock((await session.run(clockStatement)).rows)))
  const read = readFilter('replay', { ...filter, publishedTo }, replayRules)
  const report = await runVerb(
    parts,
    { name: 'replay', filter: read, effect: 'puts in line', statement: requeueStatement(parts.names) },
    options,
  )
  return { ...report, publishedTo }
}

export function discard(parts: OperatorParts, filter: DiscardFilter, options: VerbOptions): Promise<VerbReport> {
  const problems = verbProblems(options)
  if (!namesStates(filter))
    problems.push({
      path: 'filter.status',
      message: 'is required unless events are named by ids or eventIds: what is discarded does not come back',
    })
  const read = readFilter('discard', filter, discardRules, problems)
  return runVerb(
    parts,
    { name: 'discard', filter: read, effect: 'takes away', statement: discardStatement(parts.names) },
    options,
  )
}

/** An empty filter is refused for being empty. */
function namesStates(filter: DiscardFilter): boolean {
  const fields: readonly [string, unknown][] = Object.entries({ ...filter })
  const given = new Set(fields.filter(([, value]) => value !== undefined).map(([name]) => name))
  return given.size === 0 || given.has('ids') || given.has('eventIds') || given.has('status')
}

const atRule: OptionRule = {
  check: (value) =>
    value === 'now' || dateRule.check(value) === undefined ? undefined : `${dateRule.check(value) ?? ''}, or 'now'`,
  required: true,
}

export function reschedule(
  parts: OperatorParts,
  filter: RescheduleFilter,
  options: RescheduleOptions,
): Promise<VerbReport> {
  const read = readFilter('reschedule', filter, rescheduleRules, verbProblems(options, { at: atRule }))
  const at = options.at === 'now' ? null : options.at.toISOString()
  const criteria = { ...read.criteria, waits: at === null ? ('waits' as const) : null }
  const statement = rescheduleStatement(parts.names)
  return runVerb(
    parts,
    {
      name: 'reschedule',
      filter: { ...read, criteria },
      effect: at === null ? 'puts in line' : 'takes away',
      statement: (parameters) => statement(parameters, at),
    },
    options,
  )
}
