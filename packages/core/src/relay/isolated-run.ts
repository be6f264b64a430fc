import { OutboxError } from '../contract/errors.ts'
import type { EventRow } from '../storage/event-row.ts'
import { crashesUntilFailed, type Isolation } from './isolation.ts'
import type { Lane } from './lanes.ts'
import type { Outcome } from './outcome.ts'
import type { SlotTable } from './slot-table.ts'
import type { Suspects } from './suspects.ts'

export interface IsolatedRunOptions {
  readonly isolation: Isolation
  readonly suspects: Suspects
  readonly slots: SlotTable
  readonly publish: (lane: Lane) => Promise<Outcome>
  /** The database did not take the entry; the lane is tried again. */
  readonly onTrouble: (cause: unknown) => void
}

/** How long a lane waits whose event could not be written down, or whose slot seems to belong to somebody else, in ms. */
const retryMs = 1000

/**
 * Publishes the only event of an isolated slot's run, after it was written down as the suspect. An event that was there
 * in too many crashes is not published any more: it fails for good.
 */
export async function publishIsolated(lane: Lane, options: IsolatedRunOptions): Promise<Outcome> {
  const { isolation, suspects, slots, publish } = options
  const [row] = lane.rows
  if (row === undefined) return { acknowledged: 0 }
  const crashes = slots.suspicion(lane.slot, row.eventId)
  if (crashes >= crashesUntilFailed)
    return { acknowledged: 0, failure: { kind: 'permanent', cause: crashed(row, crashes) } }
  try {
    const { slot, epoch } = lane
    const owned = await suspects.write({ slot, epoch, suspect: row.eventId })
    if (!owned) return { acknowledged: 0, pauseMs: retryMs }
  } catch (cause) {
    options.onTrouble(cause)
    return { acknowledged: 0, pauseMs: retryMs }
  }
  const outcome = await publish(lane)
  isolation.cameThrough(lane.id)
  return outcome
}

/** What an isolated lane published is no suspect any more. A write that is lost leaves one more look at the event. */
export function clearSuspect(
  lane: Lane,
  eventId: string,
  { slots, suspects }: Pick<IsolatedRunOptions, 'slots' | 'suspects'>,
): void {
  const { slot, epoch } = lane
  slots.acquit(slot, eventId)
  suspects.write({ slot, epoch, cleared: eventId }).catch(() => undefined)
}

function crashed({ id, eventId, topic }: EventRow, crashes: number): OutboxError {
  return new OutboxError(
    'EVENT_CRASHED',
    `crashed: event ${eventId} (id ${id}, topic ${topic}) was being published in ${String(crashes)} crashes of a relay process and is not tried again. Look for what ended those processes, then requeue or discard it.`,
  )
}
