export interface FirstAbort {
  readonly signal: AbortSignal
  /** Stops listening. To be called when the signal is not needed any more. */
  release(): void
}

/**
 * A signal that aborts with the first of several. Not `AbortSignal.any`: on Node 20 one that is made of timeouts may be
 * collected before it fires.
 */
export function firstAbort(signals: Iterable<AbortSignal>): FirstAbort {
  const controller = new AbortController()
  const unique = new Set(signals)
  const listeners = [...unique].map((signal) => ({ signal, abort: () => controller.abort(signal.reason) }))
  for (const { signal, abort } of listeners) {
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  }
  return {
    signal: controller.signal,
    release() {
      for (const { signal, abort } of listeners) signal.removeEventListener('abort', abort)
    },
  }
}

/**
 * What comes of `work`, or, when a signal aborts first, its reason as a rejection. The work itself goes on. No listener
 * stays on the signals.
 */
export async function orAbort<T>(work: Promise<T>, ...signals: readonly AbortSignal[]): Promise<T> {
  const first = firstAbort(signals)
  try {
    return await new Promise<T>((resolve, reject) => {
      const fail = (): void => reject(first.signal.reason as Error)
      if (first.signal.aborted) fail()
      else first.signal.addEventListener('abort', fail, { once: true })
      work.then(resolve, reject)
    })
  } finally {
    first.release()
  }
}
