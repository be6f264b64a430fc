import type { SqlSession } from '../contract/sql-client.ts'
import { sqlState } from '../contract/sql-state.ts'
import { guardedStatement, markStatement, readRecord } from '../storage/guarded-statement.ts'
import { asParameter } from './array-literal.ts'
import { type Calls, explainStatement, notInTransaction, swallowedFailure } from './refusals.ts'

/** Runs a statement in the user's transaction and returns the only column of its rows, which is text. */
export type TextQuery = (text: string, values: readonly unknown[]) => Promise<readonly unknown[]>

/**
 * A session in a transaction of a library that cannot say, at the moment of a statement, whether the transaction is
 * still open, or that returns rows only in a form of its own: every statement carries the proof and returns text.
 */
export function guardedSession(query: TextQuery, calls: Calls): SqlSession {
  let marked: Promise<unknown> | undefined

  async function mark(): Promise<void> {
    try {
      await query(markStatement.text, markStatement.values)
    } catch (error) {
      // No answer of the server's: the library knows that the transaction is over, or its connection is.
      throw sqlState(error) === undefined ? notInTransaction(calls, error) : explainStatement(error, calls)
    }
  }

  return {
    async run(statement) {
      marked ??= mark()
      await marked
      const { text, values } = guardedStatement(statement)
      try {
        const records = await query(text, values.map(asParameter))
        return { rows: records.map((record) => readRecord(String(record))), affected: records.length }
      } catch (error) {
        throw explainStatement(error, calls)
      }
    },
  }
}

/**
 * Refuses a transaction that failed inside without telling anyone. Its COMMIT is answered with ROLLBACK, which most
 * libraries do not look at: they would report a commit that never was.
 */
export async function refuseSwallowed(query: TextQuery): Promise<void> {
  await query(markStatement.text, markStatement.values).catch((cause: unknown) => {
    throw sqlState(cause) === '25P02' ? swallowedFailure(cause) : cause
  })
}
