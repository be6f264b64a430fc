import { refuseSwallowed, type TextQuery } from './guarded-session.ts'

export interface LibraryTransaction<Tx extends object, T> {
  readonly work: (tx: Tx) => Promise<T>
  readonly query: (tx: Tx) => TextQuery
  /** Told when the transaction is over, for a library whose handle goes on to answer. */
  readonly onOver?: (tx: Tx) => void
}

/**
 * Runs `work` in a transaction that a library opens and ends, and lets it commit only what can be committed.
 *
 * A library may give up a transaction whose connection broke while `work` still runs: postgres.js does, and the ROLLBACK
 * that it sends when `work` ends goes to a socket that is no more and ends the process. So it never hears of that end.
 */
export async function libraryTransaction<Tx extends object, T>(
  begin: (work: (tx: Tx) => Promise<T>) => Promise<T>,
  { work, query, onOver }: LibraryTransaction<Tx, T>,
): Promise<T> {
  let given: Tx | undefined
  let over = false

  async function workAndCheck(tx: Tx): Promise<T> {
    given = tx
    const result = await work(tx)
    if (!over) await refuseSwallowed(query(tx))
    return result
  }

  try {
    return await begin((tx) => {
      const done = workAndCheck(tx)
      return new Promise((resolve, reject) => {
        done.then(
          (result) => {
            if (!over) resolve(result)
          },
          (error: unknown) => {
            if (!over) reject(error as Error)
          },
        )
      })
    })
  } finally {
    over = true
    if (given !== undefined) onOver?.(given)
  }
}
