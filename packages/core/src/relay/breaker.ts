/** Growing pauses between two tries of a destination that takes nothing. */
export interface BreakerPause {
  readonly minMs: number
  readonly maxMs: number
}

export type Admission = 'go' | 'probe' | 'wait'

/** What stands for the whole publisher when a failure names no destination. */
export const wholePublisher = '*'

export interface OpenBreaker {
  readonly destination: string
  readonly sinceMs: number
  readonly cause: unknown
}

/**
 * Which destinations take nothing at the moment. Knows no timers: every question brings the time.
 *
 * closed: everything goes. An `unavailable` answer opens it.
 * open: everything waits until the pause is over; then one lane at a time is a probe.
 * A probe that is answered (acknowledged, rejected) closes it; one that is not opens it again with a longer pause.
 */
export interface Breakers {
  /** May this lane be published to this destination now? `probe` is given to one lane at a time. */
  admit(destination: string, lane: string, now: number): Admission
  /** A destination said that it takes nothing. True when its breaker was closed until now. */
  unavailable(destination: string, now: number, cause: unknown, retryAfterMs?: number): boolean
  /** A destination answered, so the publisher as a whole does too. Returns whose breakers this closed. */
  answered(destination: string): string[]
  /** A probe ended without any answer. */
  probeEnded(lane: string, now: number): void
  /** True while nothing keeps this destination from being published to. */
  closed(destination: string): boolean
  /** When a lane of this destination may be the next probe: Infinity while a probe is on its way. */
  probeAt(destination: string): number
  open(): readonly OpenBreaker[]
}

interface State {
  readonly sinceMs: number
  pauseMs: number
  until: number
  probe: string | null
  /** The lane that was the last probe lets another one try first, in case the fault is its own. */
  lastProbe: string | null
  cause: unknown
}

export function createBreakers(pause: BreakerPause): Breakers {
  const states = new Map<string, State>()

  function admitOne(destination: string, lane: string, now: number): Admission {
    const state = states.get(destination)
    if (state === undefined) return 'go'
    if (now < state.until || state.probe !== null) return 'wait'
    if (state.lastProbe === lane) {
      state.lastProbe = null
      return 'wait'
    }
    return 'probe'
  }

  function again(state: State, now: number, retryAfterMs?: number): void {
    state.lastProbe = state.probe ?? state.lastProbe
    state.probe = null
    state.pauseMs = Math.min(state.pauseMs * 2, pause.maxMs)
    state.until = now + (retryAfterMs ?? state.pauseMs)
  }

  return {
    admit(destination, lane, now) {
      const whole = admitOne(wholePublisher, lane, now)
      if (whole === 'wait') return 'wait'
      const own = admitOne(destination, lane, now)
      if (own === 'wait') return 'wait'
      for (const [name, answer] of [
        [wholePublisher, whole],
        [destination, own],
      ] as const) {
        const state = states.get(name)
        if (answer === 'probe' && state !== undefined) state.probe = lane
      }
      return whole === 'probe' ? whole : own
    },
    unavailable(destination, now, cause, retryAfterMs) {
      const state = states.get(destination)
      if (state === undefined) {
        states.set(destination, {
          sinceMs: now,
          pauseMs: pause.minMs,
          until: now + (retryAfterMs ?? pause.minMs),
          probe: null,
          lastProbe: null,
          cause,
        })
        return true
      }
      state.cause = cause
      // Answers to publishes that were on their way when the breaker opened are no news.
      if (state.probe !== null) again(state, now, retryAfterMs)
      else if (retryAfterMs !== undefined) state.until = Math.max(state.until, now + retryAfterMs)
      return false
    },
    answered(destination) {
      return [wholePublisher, destination].filter((name) => states.delete(name))
    },
    probeEnded(lane, now) {
      for (const state of states.values()) if (state.probe === lane) again(state, now)
    },
    closed: (destination) => !states.has(destination) && !states.has(wholePublisher),
    probeAt(destination) {
      const times = [destination, wholePublisher].map((name) => {
        const state = states.get(name)
        if (state === undefined) return 0
        return state.probe === null ? state.until : Infinity
      })
      return Math.max(...times)
    },
    open: () => [...states].map(([destination, { sinceMs, cause }]) => ({ destination, sinceMs, cause })),
  }
}
