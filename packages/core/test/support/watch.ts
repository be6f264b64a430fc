/** Waits for something to be so, asked again whenever something changed. */
export interface Watch {
  readonly changed: () => void
  /** Resolves with the first value that is not undefined, now or after a change. */
  readonly until: <T>(look: () => T | undefined) => Promise<T>
}

export function createWatch(): Watch {
  const waiters = new Set<() => void>()
  return {
    changed() {
      for (const check of [...waiters]) check()
    },
    until: (look) =>
      new Promise((resolve) => {
        const check = (): void => {
          const found = look()
          if (found === undefined) return
          waiters.delete(check)
          resolve(found)
        }
        waiters.add(check)
        check()
      }),
  }
}
