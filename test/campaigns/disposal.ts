/** What has to be ended, last opened first. Node 20 has no AsyncDisposableStack. */
export interface Disposal {
  use<T extends AsyncDisposable>(made: T): T
  defer(end: () => Promise<unknown>): void
  /** Ends everything; an end that fails keeps no other from running. */
  run(): Promise<void>
}

export function createDisposal(): Disposal {
  const ends: (() => PromiseLike<unknown>)[] = []
  return {
    use(made) {
      ends.push(() => made[Symbol.asyncDispose]())
      return made
    },
    defer(end) {
      ends.push(end)
    },
    async run() {
      const problems: unknown[] = []
      for (const end of ends.splice(0).toReversed()) {
        try {
          await end()
        } catch (problem) {
          problems.push(problem)
        }
      }
      if (problems.length > 0) throw new AggregateError(problems, 'Something could not be ended.')
    },
  }
}
