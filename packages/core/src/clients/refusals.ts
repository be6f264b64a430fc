import { OutboxError } from '../contract/errors.ts'
import { sqlState } from '../contract/sql-state.ts'
import { unmarkedState } from '../storage/guarded-statement.ts'

/** What a library calls its transactions. */
export interface Calls {
  /** The handle that `enqueue` and `processOnce` want, as a noun. */
  readonly handle: string
  /** How to get one. */
  readonly open: string
  /** The first argument of `outbox.transaction`. */
  readonly db: string
}

/** @returns NOT_A_TRANSACTION: what was given can never be one. `got` says what it is. */
export function notATransaction({ handle, open, db }: Calls, got: string): OutboxError {
  return new OutboxError(
    'NOT_A_TRANSACTION',
    `The first argument must be ${handle}; it is ${got}. Use ${open}, or outbox.transaction(${db}, (tx) => ...).`,
  )
}

/** @returns NOT_IN_TRANSACTION: none is open on it, or not any more. */
export function notInTransaction({ open, db }: Calls, cause?: unknown): OutboxError {
  return new OutboxError(
    'NOT_IN_TRANSACTION',
    `There is no open transaction: it was never begun, or has ended. So this could not commit together with the business rows. Use ${open}, or outbox.transaction(${db}, (tx) => ...), and await the call in it.`,
    cause === undefined ? {} : { cause },
  )
}

/** @returns NOT_IN_TRANSACTION: it is open and can only be rolled back. */
export function failedTransaction(cause?: unknown): OutboxError {
  return new OutboxError(
    'NOT_IN_TRANSACTION',
    'The transaction has already failed, so this could only be rolled back with it. Run ROLLBACK and start again.',
    cause === undefined ? {} : { cause },
  )
}

/** @returns NOT_IN_TRANSACTION, for a commit that the server would answer with a rollback. */
export function swallowedFailure(cause?: unknown): OutboxError {
  return new OutboxError(
    'NOT_IN_TRANSACTION',
    'A statement of the transaction failed and its error was swallowed, so nothing can be committed. Let the error of that statement reach the caller.',
    cause === undefined ? {} : { cause },
  )
}

/** What an error of a statement says about the transaction it was meant for; every other error is returned as it is. */
export function explainStatement(error: unknown, calls: Calls): unknown {
  const state = sqlState(error)
  if (state === unmarkedState) return notInTransaction(calls, error)
  if (state === '25P02') return failedTransaction(error)
  return error
}
