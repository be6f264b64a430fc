import type { EventInput } from '@inorder/core'
import type { Random } from './random.ts'

export interface EventMix {
  /** Topics, at most 3. */
  readonly topics: number
  /** Keys per topic. */
  readonly keys: number
  /** Share of events in the one lane of total order. Its events go to several topics. */
  readonly total: number
  /** Share of events that are scheduled for later, by up to half a second. */
  readonly delayed: number
}

/** An event of the mix, with what its writer has to remember of it. */
export interface MixedEvent {
  readonly input: EventInput
  readonly lane: string
  /** Scheduled for later: it has no place in the order of its lane. */
  readonly delayed: boolean
}

/** A random event: mostly of a few keys, some without a key or in an order of their own, some large. */
export function mixEvent(
  eventId: string,
  random: Random,
  { topics, keys, total, delayed: later }: EventMix,
): MixedEvent {
  const topic = random.pick(['a', 'b', 'c'].slice(0, topics))
  const ordering = random.chance(total) ? 'total' : random.chance(0.04) ? 'none' : 'key'
  const key = random.chance(0.05) ? null : `k${random.below(keys)}`
  const delayed = random.chance(later)
  const input: EventInput = {
    eventId,
    topic,
    key,
    ordering,
    payload: random.chance(0.01) ? Buffer.alloc(6000, 1) : Buffer.from('x'.repeat(100)),
    ...(delayed ? { delayMs: random.below(500) } : {}),
  }
  const lane = ordering === 'total' ? 'total' : ordering === 'none' || key === null ? eventId : `${topic}/${key}`
  return { input, lane, delayed }
}
