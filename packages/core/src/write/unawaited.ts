/** The enqueues that are still running in the transactions of `outbox.transaction`. */
export interface Unawaited<Tx> {
  /** Notes an enqueue, if its transaction is one of these. */
  add(tx: Tx, enqueue: Promise<unknown>): void
  /**
   * Runs `work`, and waits for the enqueues that it began and did not wait for. One that fails makes the transaction
   * fail: otherwise it would commit without its event.
   */
  within<Given extends Tx, T>(tx: Given, work: (tx: Given) => Promise<T>): Promise<T>
}

export function createUnawaited<Tx>(): Unawaited<Tx> {
  const running = new Map<Tx, Set<Promise<unknown>>>()

  return {
    add(tx, enqueue) {
      const calls = running.get(tx)
      if (calls === undefined) return
      calls.add(enqueue)
      const forget = (): void => {
        calls.delete(enqueue)
      }
      enqueue.then(forget, forget)
    },
    async within(tx, work) {
      const outer = running.get(tx)
      const calls = outer ?? new Set<Promise<unknown>>()
      running.set(tx, calls)
      try {
        const result = await work(tx)
        await Promise.all(calls)
        return result
      } finally {
        await Promise.allSettled(calls)
        if (outer === undefined) running.delete(tx)
      }
    },
  }
}
