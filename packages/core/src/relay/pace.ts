/**
 * Waiting. The only file beside `relay.ts` that owns timers; everything that waits here takes a signal or a wake-up.
 */

/** Longest wait of one timer: a larger number of milliseconds overflows it and fires at once. */
const longestTimerMs = 2 ** 31 - 1

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

/** The value of `work`, or `late` when it takes longer than `ms`. The work itself goes on. */
export async function within<T, L>(work: Promise<T>, ms: number, late: L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<L>((resolve) => {
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

/**
 * Runs `work` with a signal that aborts after `ms`, and gives it up `graceMs` later with `late`. While it runs its
 * controller is in `running`, so that a stop can abort it earlier.
 */
export async function withDeadline<T, L>(
  work: (signal: AbortSignal) => Promise<T>,
  limits: { readonly ms: number; readonly graceMs: number; readonly late: L },
  running: Set<AbortController>,
): Promise<T | L> {
  const controller = new AbortController()
  running.add(controller)
  let timer: NodeJS.Timeout | undefined
  try {
    return await new Promise<T | L>((resolve, reject) => {
      const giveUp = (): void => {
        resolve(limits.late)
      }
      timer = setTimeout(() => {
        controller.abort(new Error(`no answer within ${String(limits.ms)} ms`))
      }, limits.ms)
      controller.signal.addEventListener('abort', () => {
        clearTimeout(timer)
        timer = setTimeout(giveUp, limits.graceMs)
      })
      work(controller.signal).then(resolve, reject)
    })
  } finally {
    clearTimeout(timer)
    running.delete(controller)
  }
}
