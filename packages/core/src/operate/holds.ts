import { randomUUID } from 'node:crypto'
import type { Problem } from '../contract/errors.ts'
import { flagOption, optionProblems, refuseProblems, required, textOption } from '../contract/option-table.ts'
import { heldStatement, holdStatement, type HoldTarget, readHeld, releaseHoldStatement } from '../storage/hold-lane.ts'
import type { AuditEntry } from '../storage/record-audit.ts'
import { laneTable } from './filter.ts'
import { type OperatorParts, withSession } from './session.ts'
import { stampLanes } from './stamp.ts'

export interface HoldOptions {
  /** Why, for whoever finds it stopped: at most 1,024 bytes. */
  readonly reason: string
  /** Whether to say what would change, and write nothing at all. Default false. */
  readonly dryRun?: boolean
}

export type ReleaseOptions = Omit<HoldOptions, 'reason'>

export interface HoldReport {
  /** UUID under which it stands in the audit. */
  readonly action: string
  readonly dryRun: boolean
  /** False when there was nothing to do: it was held already, or was not held. */
  readonly changed: boolean
}

const reasonRule = required(textOption({ maxBytes: 1024 }))

export async function hold(parts: OperatorParts, target: HoldTarget, options: HoldOptions): Promise<HoldReport> {
  refuseProblems('hold', [
    ...targetProblems(target),
    ...optionProblems(options, { reason: reasonRule, dryRun: flagOption() }),
  ])
  const { dryRun = false, reason } = options
  const audit = auditOf(parts, 'hold', target)
  return withSession(parts, async (session) => {
    const statement = dryRun ? heldStatement(parts.names)(target) : holdStatement(parts.names)(target, reason, audit)
    const { count } = readHeld((await session.run(statement)).rows)
    return { action: audit.action, dryRun, changed: dryRun ? count === 0 : count > 0 }
  })
}

export async function release(parts: OperatorParts, target: HoldTarget, options: ReleaseOptions): Promise<HoldReport> {
  refuseProblems('release', [...targetProblems(target), ...optionProblems(options, { dryRun: flagOption() })])
  const { dryRun = false } = options
  const audit = auditOf(parts, 'release', target)
  return withSession(parts, async (session) => {
    const statement = dryRun ? heldStatement(parts.names)(target) : releaseHoldStatement(parts.names)(target, audit)
    const { count, lane } = readHeld((await session.run(statement)).rows)
    if (!dryRun && count > 0) {
      if (lane !== null) await stampLanes(session, parts, { lanes: [lane], after: ['-1'] })
      parts.wake()
    }
    return { action: audit.action, dryRun, changed: count > 0 }
  })
}

function targetProblems(target: HoldTarget): Problem[] {
  const problems = optionProblems(target, laneTable).map(({ path, message }) => ({ path: `target.${path}`, message }))
  if (problems.length > 0) return problems
  const { topic, key, lane } = target as { readonly topic?: string; readonly key?: string; readonly lane?: string }
  if ((lane === undefined) === (topic === undefined) || (lane !== undefined && key !== undefined))
    problems.push({ path: 'target', message: 'must be { topic }, { topic, key } or { lane }' })
  return problems
}

function auditOf({ actor }: OperatorParts, verb: string, target: HoldTarget): AuditEntry {
  return { action: randomUUID(), actor, verb, filter: JSON.stringify(target) }
}
