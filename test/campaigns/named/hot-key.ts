import type { Campaign } from '../campaign-plan.ts'
import type { Evidence } from '../evidence.ts'
import { none } from '../judge.ts'
import type { StageOptions } from '../stage-options.ts'
import { killRelays } from './kill-relays.ts'

const oneKey: Partial<StageOptions> = { writers: 2, hands: 16, topics: 1, keys: 1, total: 0, delayed: 0, openMs: 40 }

/** Everybody writes the same key, and what overlaps has no order but what does not. */
export const hotKey: Campaign = {
  name: 'hot-key',
  about: '32 writers on one key, while relays are killed',
  stage: oneKey,
  disturb: killRelays.disturb,
}

/** The same with writers that wait for each other, so that the order of the commits is the order of the key. */
export const hotKeySerialized: Campaign = {
  name: 'hot-key-serialized',
  about: 'the same with serializeWrites',
  stage: { ...oneKey, serializeWrites: true },
  disturb: killRelays.disturb,
  check: findCommitDisorder,
}

/** Events of one key whose first deliveries are not in the order in which the database committed their transactions. */
function findCommitDisorder({ transactions, bookings, arrivals }: Evidence): string[] {
  const committedAt = new Map<string, bigint>()
  for (const { tx, events } of transactions) {
    const booking = bookings.get(tx)
    if (booking === undefined) continue
    for (const { eventId, lane } of events) if (lane === 'a/k0') committedAt.set(eventId, booking.committedAt)
  }
  const firsts = [...new Set(arrivals.map(({ eventId }) => eventId))].filter((eventId) => committedAt.has(eventId))
  const at = (eventId: string | undefined): bigint => committedAt.get(eventId ?? '') ?? 0n
  return none(
    'delivered before one that was committed before',
    firsts.filter((eventId, index) => at(firsts[index + 1] ?? eventId) < at(eventId)),
  )
}
