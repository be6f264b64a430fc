import { OutboxError } from '../contract/errors.ts'

/** Begins a transaction and ends it after `work`. */
export type Begin<Tx> = <T>(work: (tx: Tx) => Promise<T>) => Promise<T>

/** The method of a library that does so; each is typed with overloads of its own. */
export function beginner<Tx>(owner: object, method: string): Begin<Tx> {
  return (work) => {
    const { [method]: begin } = owner as Record<string, Begin<Tx> | undefined>
    if (begin === undefined) {
      throw new OutboxError(
        'NOT_A_TRANSACTION',
        `outbox.transaction got something that can begin no transaction: it has no method "${method}".`,
      )
    }
    return begin.call(owner, work) as ReturnType<typeof work>
  }
}

export interface LibraryTransaction<Tx extends object, T> {
  readonly work: (tx: Tx) => Promise<T>
  /** Rejects when the transaction cannot be committed any more. */
  readonly check: (tx: Tx) => Promise<void>
  /** Told when the transaction is over, for a library whose handle goes on to answer. */
  readonly onOver?: (tx: Tx) => unknown
}

/**
 * Runs `work` in a transaction that a library opens and ends, and lets it commit only what can be committed.
 *
 * A library may give up a transaction whose connection broke while `work` still runs: postgres.js does, and the ROLLBACK
 * that it sends when `work` ends goes to a socket that is no more and ends the process. So it never hears of that end.
 */
export async function libraryTransaction<Tx extends object, T>(
  begin: Begin<Tx>,
  { work, check, onOver }: LibraryTransaction<Tx, T>,
): Promise<T> {
  let given: Tx | undefined
  let over = false

  async function workAndCheck(tx: Tx): Promise<T> {
    given = tx
    const result = await work(tx)
    if (!over) await check(tx)
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
            // Whatever the caller threw comes back as it is.
            // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors
            if (!over) reject(error)
          },
        )
      })
    })
  } finally {
    over = true
    if (given !== undefined) onOver?.(given)
  }
}
