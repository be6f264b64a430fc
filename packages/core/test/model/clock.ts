/** The clocks of this process. A script moves them, so that hours pass without a wait. */
export interface Clock {
  /** Time passes: the monotonic clock goes on by so many ms. */
  pass(ms: number): void
  /** Somebody sets the wall clock: it is off by so many ms from now on. */
  skew(ms: number): void
  /** The true wall clock, in ms. */
  trueTime(): number
  /** Both are what they were. */
  restore(): void
}

/** Moves the clocks that `performance.now`, `Date.now` and `new Date` read. Timers are left alone. */
export function createClock(): Clock {
  const { Date: TrueDate } = globalThis
  const trueNow = performance.now.bind(performance)
  let passed = 0
  let off = 0

  class MovedDate extends TrueDate {
    constructor(...given: [] | [value: number | string | Date]) {
      if (given.length === 0) super(TrueDate.now() + off)
      else super(...given)
    }
    static override now(): number {
      return TrueDate.now() + off
    }
  }

  return {
    pass(ms) {
      passed += ms
      performance.now = () => trueNow() + passed
    },
    skew(ms) {
      off = ms
      globalThis.Date = MovedDate as DateConstructor
    },
    trueTime: () => TrueDate.now(),
    restore() {
      passed = 0
      off = 0
      performance.now = trueNow
      globalThis.Date = TrueDate
    },
  }
}
