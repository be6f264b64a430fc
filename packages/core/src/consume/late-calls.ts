import type { OutboxEvent } from '../contract/event.ts'
import type { Failure } from '../contract/publisher.ts'

/**
 * The calls of handlers that were given up on, because they had not ended when their signal aborted.
 *
 * running: the handler is at it. A retry of the event waits for it instead of starting it a second time: otherwise a
 *   handler that is a little slower than its deadline would run over and over, and its late effects would come after
 *   those of its key's next events.
 * ended well: the next retry acknowledges the event without running anything.
 * A call that ended in any other way is forgotten, and the next retry runs the handler again.
 */
export interface LateCalls {
  /** Goes on with an earlier call for this event, or begins one, until it ends or the signal aborts. Never rejects. */
  goOn(event: OutboxEvent, signal: AbortSignal, begin: () => Promise<Failure | undefined>): Promise<Failure | undefined>
  /** The events whose handler still runs. */
  running(): LateEvent[]
}

/** Not the whole event: its payload would be kept for as long as the call is remembered. */
type LateEvent = Pick<OutboxEvent, 'eventId' | 'type' | 'topic'>

interface LateCall {
  readonly event: LateEvent
  readonly outcome: Promise<Failure | undefined>
  ended: boolean
}

/** Calls that are remembered. One more forgets the oldest: the worst is that its handler runs a second time. */
const mostCalls = 1000

const givenUp: unique symbol = Symbol('given up')

export function createLateCalls(): LateCalls {
  const calls = new Map<string, LateCall>()

  function remember(key: string, { eventId, type, topic }: OutboxEvent, outcome: LateCall['outcome']): void {
    const call: LateCall = { event: { eventId, type, topic }, outcome, ended: false }
    calls.set(key, call)
    const [oldest] = calls.keys()
    if (calls.size > mostCalls && oldest !== undefined) calls.delete(oldest)
    void outcome.then((failure) => {
      call.ended = true
      if (failure !== undefined && calls.get(key) === call) calls.delete(key)
    })
  }

  async function waitFor(
    outcome: LateCall['outcome'],
    signal: AbortSignal,
  ): Promise<Failure | undefined | typeof givenUp> {
    let giveUp = (): void => undefined
    const aborted = new Promise<typeof givenUp>((resolve) => {
      // A turn later, so that a handler that heeds the signal ends in its own words.
      giveUp = () => void setImmediate(() => resolve(givenUp))
    })
    if (signal.aborted) giveUp()
    else signal.addEventListener('abort', giveUp, { once: true })
    try {
      return await Promise.race([outcome, aborted])
    } finally {
      signal.removeEventListener('abort', giveUp)
    }
  }

  return {
    async goOn(event, signal, begin) {
      // An operator who puts the event back in line asks for a new call.
      const key = `${event.eventId}:${String(event.requeues)}`
      const before = calls.get(key)
      if (before !== undefined) {
        const ended = await waitFor(before.outcome, signal)
        if (ended === givenUp) return { kind: 'unknown', cause: stillRunning(event) }
        calls.delete(key)
        if (ended === undefined) return undefined
      }
      if (signal.aborted) return { kind: 'unknown', cause: signal.reason }
      const outcome = begin()
      const ended = await waitFor(outcome, signal)
      if (ended !== givenUp) return ended
      remember(key, event, outcome)
      return { kind: 'unknown', cause: signal.reason }
    },
    running: () => [...calls.values()].filter(({ ended }) => !ended).map(({ event }) => event),
  }
}

function stillRunning({ eventId }: OutboxEvent): Error {
  return new Error(`the handler of event ${eventId} still runs, although the signal of an earlier try aborted`)
}
