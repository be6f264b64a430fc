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

/** Works that began within a hundredth of their time share one timer. */
const sharesOfATime = 100

/** A work that has not ended. */
interface Work {
  readonly controller: AbortController
  readonly giveUp: () => void
}

/** Works that share a deadline. */
interface Bucket {
  readonly works: Set<Work>
  /** Until when works may join it. */
  readonly until: number
}

/**
 * Deadlines for many short works. With a timer and its listeners for each, an event with a key of its own cost the relay
 * 56 us; with shared ones 43. A deadline is late by at most a hundredth. No timer keeps the process alive: what it waits
 * for does.
 */
export function createDeadlines({ ms, graceMs }: { readonly ms: number; readonly graceMs: number }): Deadlines {
  const open = new Set<Bucket>()
  let current: Bucket | undefined

  function join(): Bucket {
    const now = performance.now()
    if (current !== undefined && now < current.until) return current
    const made: Bucket = { works: new Set(), until: now + ms / sharesOfATime }
    current = made
    open.add(made)
    const expire = (): void => {
      open.delete(made)
      abort(made, new Error(`no answer within ${String(ms)} ms`))
    }
    setTimeout(expire, Math.min(ms + ms / sharesOfATime, longestTimerMs)).unref()
    return made
  }

  function abort({ works }: Bucket, reason: Error): void {
    const aborted = [...works]
    for (const { controller } of aborted) controller.abort(reason)
    const giveUp = (): void => {
      for (const work of aborted) work.giveUp()
    }
    setTimeout(giveUp, graceMs).unref()
  }

  return {
    async run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T | typeof late> {
      const { works } = join()
      const controller = new AbortController()
      let entry: Work | undefined
      try {
        return await new Promise<T | typeof late>((resolve, reject) => {
          const giveUp = (): void => {
            resolve(late)
          }
          entry = { controller, giveUp }
          works.add(entry)
          work(controller.signal).then(resolve, reject)
        })
      } finally {
        if (entry !== undefined) works.delete(entry)
      }
    },
    abortAll(reason) {
      for (const bucket of open) abort(bucket, reason)
    },
  }
}
