import { slotCount } from '../contract/lane.ts'

export interface Shares {
  /** How many slots this relay owns, those it is giving up left out. */
  readonly owned: number
  /** How many each other live relay of the group owns. */
  readonly others: readonly number[]
  readonly free: number
  /** How many of the free ones nobody has taken for a whole heartbeat. */
  readonly stale: number
}

export interface SlotDecision {
  readonly claim: number
  readonly giveUp: number
}

/**
 * How many slots to take or to give up. A fair share is a 256th part rounded either way. Free slots are taken up to
 * the share; what nobody has taken for a heartbeat may exceed it, so that nothing is left without an owner. Slots are
 * given up only to a live relay that is below its share.
 */
export function decideSlots({ owned, others, free, stale }: Shares): SlotDecision {
  const relays = others.length + 1
  const most = Math.ceil(slotCount / relays)
  const least = Math.floor(slotCount / relays)
  const missingMost = others.reduce((sum, count) => sum + Math.max(0, most - count), 0)
  const missingLeast = others.reduce((sum, count) => sum + Math.max(0, least - count), 0)
  // First what this relay lacks; one more only of what nobody else lacks, or two neighbours pass a slot to and fro.
  const needed = Math.min(free, Math.max(least - owned, 0))
  const spare = Math.min(Math.max(most - Math.max(owned, least), 0), Math.max(free - needed - missingLeast, 0))
  const claim = Math.min(free, Math.max(needed + spare, stale))
  if (claim > 0) return { claim, giveUp: 0 }
  const giveUp = Math.max(Math.min(owned - most, missingMost), Math.min(owned - least, missingLeast), 0)
  return { claim: 0, giveUp }
}
