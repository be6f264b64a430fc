import type { SqlSession } from '../contract/sql-client.ts'
import { readMissed, stampLanesStatement } from '../storage/stamp-lanes.ts'
import type { OpenedLanes } from '../storage/take-events.ts'
import type { OperatorParts } from './session.ts'

/** How often a lane is stamped in which every event is locked, and the wait in between, in ms. */
const tries = 8
const lockedMs = 25

/**
 * Makes the relays look at lanes that were opened. Must run after what opened them was committed. Not to be aborted:
 * nobody else names these lanes. One in which every event stays locked is left to the sweep of the relays.
 */
export async function stampLanes(session: SqlSession, parts: OperatorParts, opened: OpenedLanes): Promise<void> {
  const never = new AbortController().signal
  const statement = stampLanesStatement(parts.names)
  let left = opened
  for (let tried = 1; left.lanes.length > 0; tried++) {
    left = readMissed((await session.run(statement(left))).rows)
    if (left.lanes.length === 0 || tried >= tries) return
    await parts.pause(lockedMs, never)
  }
}
