import { randomUUID } from 'node:crypto'
import { OutboxError } from '../contract/errors.ts'
import type { Ordering } from '../contract/event.ts'
import {
  choiceOption,
  flagOption,
  numberOption,
  objectOption,
  type OptionTable,
  optionProblems,
  refuseProblems,
} from '../contract/option-table.ts'
import { sqlFault } from '../contract/sql-state.ts'
import {
  type OrderingState,
  orderingStateStatement,
  readOrderingState,
  setOrderingStatements,
} from '../storage/set-ordering.ts'
import { type OperatorParts, type OperatorSession, withSession } from './session.ts'

export interface SetOrderingOptions {
  /**
   * Whether to change the mode although events are in line or scheduled. Default false. They keep the mode they were
   * written with, and have no order with those written later.
   */
  readonly force?: boolean
  /** Whether to say what would change, and write nothing at all. Default false. */
  readonly dryRun?: boolean
  /**
   * How long to wait for a moment in which no transaction holds the table, in ms. Default 10,000, minimum 0. Writers are
   * kept waiting for a tenth of a second at a time and let pass in between.
   */
  readonly waitMs?: number
  readonly signal?: AbortSignal
}

export interface OrderingReport {
  /** UUID under which it stands in the audit. */
  readonly action: string
  readonly dryRun: boolean
  readonly from: Ordering
  readonly to: Ordering
  readonly changed: boolean
  /** Whether nothing was in line or scheduled. */
  readonly drained: boolean
}

const optionsTable: OptionTable = {
  force: flagOption(),
  dryRun: flagOption(),
  waitMs: numberOption({ min: 0, max: 3_600_000, integer: false }),
  signal: objectOption('aborted', 'addEventListener'),
}
const orderingRule = choiceOption('key', 'total', 'none')

/** How long writers queue behind a try, and how long they pass in between, in ms. */
const lockTimeoutMs = 100
const letPassMs = 200

/** Changes the mode of the outbox for events that are written from now on. */
export async function setOrdering(
  parts: OperatorParts,
  to: Ordering,
  options: SetOrderingOptions,
): Promise<OrderingReport> {
  const wrong = orderingRule.check(to)
  refuseProblems('setOrdering', [
    ...(wrong === undefined ? [] : [{ path: 'ordering', message: wrong }]),
    ...optionProblems(options, optionsTable),
  ])
  const { force = false, dryRun = false, waitMs = 10_000 } = options
  const signal = options.signal ?? new AbortController().signal
  const action = randomUUID()
  const report = ({ ordering, drained }: OrderingState, changed: boolean): OrderingReport => ({
    action,
    dryRun,
    from: ordering,
    to,
    changed,
    drained,
  })

  async function change(session: OperatorSession): Promise<OrderingReport> {
    const audit = { action, actor: parts.actor, verb: 'setOrdering', filter: JSON.stringify({ ordering: to, force }) }
    const statements = setOrderingStatements(parts.names, to, lockTimeoutMs, audit)
    return session.transaction(async (tx) => {
      for (const statement of statements.lock) await tx.run(statement)
      const state = readOrderingState((await tx.run(orderingStateStatement(parts.names))).rows)
      if (!force) requireDrained(state)
      requireOneGroup(state, to)
      for (const statement of statements.change) await tx.run(statement)
      return report(state, true)
    })
  }

  return withSession(parts, async (session) => {
    const state = readOrderingState((await session.run(orderingStateStatement(parts.names))).rows)
    if (dryRun || state.ordering === to) return report(state, state.ordering !== to)
    const until = performance.now() + waitMs
    for (;;) {
      try {
        return await change(session)
      } catch (error) {
        const fault = sqlFault(error)
        if (error instanceof OutboxError || (fault !== 'locked' && fault !== 'conflict')) throw error
        const late = performance.now() >= until
        if (late || !(await parts.pause(letPassMs, signal))) throw busy(error)
      }
    }
  })
}

function busy(cause: unknown): OutboxError {
  return new OutboxError(
    'TABLE_BUSY',
    'The mode was not changed: in all this time some transaction was using the table of the events. Look for one that has been open for long (pg_stat_activity, state "idle in transaction") and call again.',
    { cause },
  )
}

function requireDrained({ drained }: OrderingState): void {
  if (drained) return
  throw new OutboxError(
    'NOT_DRAINED',
    'The mode was not changed: events are in line or scheduled, and would have no order with those that are written under the new mode. Let the outbox drain first, or pass { force: true }.',
  )
}

/** In total order everything is one lane, and one group must publish all of it. */
function requireOneGroup({ groups }: OrderingState, to: Ordering): void {
  if (to !== 'total' || groups.length === 0) return
  const [only] = groups
  if (groups.length === 1 && only?.topics === null) return
  throw new OutboxError(
    'TOPICS_OVERLAP',
    `The mode was not changed: total order needs one relay group with all topics, and there ${groups.length === 1 ? 'is' : 'are'} ${groups.map(({ group, topics }) => `'${group}' with ${topics === null ? 'all topics' : topics.join(', ')}`).join('; ')}. Stop those relays first.`,
  )
}
