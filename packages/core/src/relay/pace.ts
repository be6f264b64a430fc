import { setMaxListeners } from 'node:events'

/**
 * Waiting. The only file beside `relay.ts` that owns timers; everything that waits here takes a signal or a wake-up.
 */

/** Longest wait of one timer: a larger number of milliseconds overflows it and fires at once. */
export const longestTimerMs: number = 2 ** 31 - 1

export interface Pace {
  /** Waits until `wake`, at most `atMost` ms and at most until the pace's own interval is over. */
  wait(atMost: number): Promise<void>
  /** Something was found: the next waits are short again. */
  quicken(): void
  readonly wake: () => void
}

/**
 * The rhythm of a loop that polls: `minMs` while there is work, slowing down to `maxMs` when nothing turns up. It stays
 * quick for half a second after the last find, so that a steady trickle never slows it down.
 */
export function createPace(minMs: number, maxMs: number): Pace {
  const quickWaits = Math.ceil(500 / minMs)
  let waits = 0
  let woken = false
  let end: (() => void) | undefined
  return {
    async wait(atMost) {
      if (!woken) {
        waits += 1
        const interval = waits <= quickWaits ? minMs : Math.min(maxMs, minMs * 1.5 ** Math.min(waits - quickWaits, 40))
        const ms = Math.max(0, Math.min(interval, atMost))
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms)
          end = () => {
            clearTimeout(timer)
            resolve()
          }
        })
        end = undefined
      }
      if (woken) waits = 0
      woken = false
    },
    quicken() {
      waits = 0
    },
    wake() {
      woken = true
      end?.()
    },
  }
}

/** Resolves with true after `ms`, or with false as soon as the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve(false)
      return
    }
    const timer = setTimeout(
      () => {
        signal.removeEventListener('abort', cut)
        resolve(true)
      },
      Math.min(ms, longestTimerMs),
    )
    const cut = (): void => {
      clearTimeout(timer)
      resolve(false)
    }
    signal.addEventListener('abort', cut, { once: true })
  })
}

/** What a work resolves to that was given up. */
export const late: unique symbol = Symbol('late')

/** The value of `work`, or `late` when it takes longer than `ms`. The work itself goes on. */
export async function within<T>(work: Promise<T>, ms: number): Promise<T | typeof late> {
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<typeof late>((resolve) => {
    timer = setTimeout(
      () => {
        resolve(late)
      },
      Math.min(ms, longestTimerMs),
    )
  })
  try {
    return await Promise.race([work, deadline])
  } finally {
    clearTimeout(timer)
  }
}

/** Waits of growing length between two tries to reach something: 50 ms, doubling to 2 s. */
export function retryPauseMs(failures: number): number {
  return Math.min(2000, 50 * 2 ** Math.min(failures, 10))
}

export interface Deadlines {
  /**
   * Runs `work` with a signal that aborts when its time is over, and gives it up with `late` when it has not ended
   * `graceMs` after that. The work itself goes on.
   */
  run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T | typeof late>
  /** Aborts everything that runs. */
  abortAll(reason: Error): void
}

/** Works that began within a hundredth of their time share one signal and one timer. */
const sharesOfATime = 100

/** Works that share a deadline. */
interface Bucket {
  readonly controller: AbortController
  /** Gives up the works that have not ended. */
  readonly waiting: Set<() => void>
  /** Until when works may join it. */
  readonly until: number
  timer: NodeJS.Timeout
}

/**
 * Deadlines for many short works. With a controller and a timer for each, an event with a key of its own cost the relay
 * 56 us; with shared ones 43. A deadline is late by at most a hundredth.
 */
export function createDeadlines({ ms, graceMs }: { readonly ms: number; readonly graceMs: number }): Deadlines {
  const open = new Set<Bucket>()
  let current: Bucket | undefined

  function join(): Bucket {
    const now = performance.now()
    if (current !== undefined && now < current.until) return current
    const full = current
    current = makeBucket(now + ms / sharesOfATime)
    open.add(current)
    if (full !== undefined) dropEmpty(full)
    return current
  }

  function makeBucket(until: number): Bucket {
    const controller = new AbortController()
    setMaxListeners(0, controller.signal)
    const expire = (): void => {
      controller.abort(new Error(`no answer within ${String(ms)} ms`))
    }
    const timer = setTimeout(expire, Math.min(ms + ms / sharesOfATime, longestTimerMs))
    const made: Bucket = { controller, waiting: new Set(), until, timer }
    controller.signal.addEventListener('abort', () => {
      if (current === made) current = undefined
      clearTimeout(made.timer)
      made.timer = setTimeout(() => {
        open.delete(made)
        for (const giveUp of made.waiting) giveUp()
      }, graceMs)
      dropEmpty(made)
    })
    return made
  }

  /** A bucket that nobody can join and nobody waits in: its signal must not abort for works that have ended. */
  function dropEmpty(bucket: Bucket): void {
    if (bucket === current || bucket.waiting.size > 0) return
    clearTimeout(bucket.timer)
    open.delete(bucket)
  }

  return {
    async run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T | typeof late> {
      const bucket = join()
      let giveUp: (() => void) | undefined
      try {
        return await new Promise<T | typeof late>((resolve, reject) => {
          giveUp = () => {
            resolve(late)
          }
          bucket.waiting.add(giveUp)
          work(bucket.controller.signal).then(resolve, reject)
        })
      } finally {
        if (giveUp !== undefined) bucket.waiting.delete(giveUp)
        dropEmpty(bucket)
      }
    },
    abortAll(reason) {
      for (const { controller } of open) controller.abort(reason)
    },
  }
}
