/** Everything of the relays that is on its way to the database, one statement at a time. */
export interface Traffic {
  /** Runs one piece of work when all earlier ones have ended. */
  run<T>(work: () => Promise<T>): Promise<T>
  /** Resolves when nothing is on its way, and nothing comes by itself any more. */
  rest(): Promise<void>
}

/** Turns of the event loop in which nothing new was sent: the engine puts work off by one turn at most, in a row of two. */
const quietTurns = 3

export function createTraffic(): Traffic {
  let running = 0
  let begun = 0
  let last: Promise<unknown> = Promise.resolve()

  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

  return {
    run(work) {
      running += 1
      begun += 1
      const done = last.then(work)
      last = done
        .catch(() => undefined)
        .then(() => {
          running -= 1
        })
      return done
    },
    async rest() {
      for (let quiet = 0; quiet < quietTurns; ) {
        const before = begun
        await turn()
        if (running > 0) await last
        quiet = running === 0 && begun === before ? quiet + 1 : 0
      }
    },
  }
}
