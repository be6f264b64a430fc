export interface CoalesceOptions<Item, Outcome> {
  /** Most items in one batch. */
  readonly maxItems: number
  /** Largest sum of `sizeOf` in one batch. An item that is larger by itself goes alone. */
  readonly maxSize: number
  readonly sizeOf: (item: Item) => number
  /** Most batches on their way at once. With 1 no batch can overtake another. */
  readonly concurrency: number
  /** Sends one batch. Answers with one outcome for each item, in their order, and never rejects. */
  readonly send: (batch: readonly Item[]) => Promise<readonly Outcome[]>
}

/** Resolves with the outcome, or with undefined when the signal aborted before the item was sent. */
export type Submit<Item, Outcome> = (item: Item, signal: AbortSignal) => Promise<Outcome | undefined>

interface Waiting<Item, Outcome> {
  readonly item: Item
  readonly settle: (outcome: Outcome | undefined) => void
  readonly fail: (cause: Error) => void
}

/**
 * Turns concurrent calls into batches, in the order of the calls: what is submitted while no batch may be sent goes with
 * the next. The first batch waits for the end of the current turn of the event loop, so that calls that are made together
 * go together.
 */
export function coalesce<Item, Outcome>(options: CoalesceOptions<Item, Outcome>): Submit<Item, Outcome> {
  const { maxItems, maxSize, sizeOf, concurrency, send } = options
  const queue = new Set<Waiting<Item, Outcome>>()
  let sending = 0
  let woken = false

  function next(): Waiting<Item, Outcome>[] {
    const batch: Waiting<Item, Outcome>[] = []
    let size = 0
    for (const waiting of queue) {
      size += sizeOf(waiting.item)
      if (batch.length > 0 && (batch.length === maxItems || size > maxSize)) break
      batch.push(waiting)
      queue.delete(waiting)
    }
    return batch
  }

  async function sendNext(): Promise<void> {
    const batch = next()
    sending += 1
    try {
      const outcomes = await send(batch.map(({ item }) => item))
      for (const [index, { settle }] of batch.entries()) settle(outcomes[index])
    } catch (cause) {
      const error = cause instanceof Error ? cause : new Error(String(cause))
      for (const { fail } of batch) fail(error)
    } finally {
      sending -= 1
      wake()
    }
  }

  function wake(): void {
    if (woken || queue.size === 0 || sending >= concurrency) return
    woken = true
    setImmediate(() => {
      woken = false
      while (queue.size > 0 && sending < concurrency) void sendNext()
    })
  }

  return (item, signal) =>
    new Promise((resolve, reject) => {
      if (signal.aborted) {
        resolve(undefined)
        return
      }
      const done = (): void => signal.removeEventListener('abort', leave)
      const waiting: Waiting<Item, Outcome> = {
        item,
        settle(outcome) {
          done()
          resolve(outcome)
        },
        fail(cause) {
          done()
          reject(cause)
        },
      }
      const leave = (): void => {
        if (queue.delete(waiting)) waiting.settle(undefined)
      }
      signal.addEventListener('abort', leave, { once: true })
      queue.add(waiting)
      wake()
    })
}
