import type { SqlClient, SqlConnector, SqlSession } from '../contract/sql-client.ts'
import { guardedSession, refuseSwallowed, type TextQuery } from './guarded-session.ts'
import { lentSessions } from './lent-sessions.ts'
import { beginner, libraryTransaction } from './library-transaction.ts'
import {
  connectPostgresJs,
  type PostgresJsFactory,
  type PostgresJsSession,
  runPostgresJs,
} from './postgres-js-session.ts'
import { type Calls, notATransaction, notInTransaction } from './refusals.ts'

/** The part of what `postgres(...)` returns that is used. */
export interface PostgresJs {
  readonly options: object
  begin(...given: never[]): unknown
}

/** The part of a transaction of postgres.js that is used. A reserved connection between BEGIN and COMMIT will do as well. */
export type PostgresJsTransaction = PostgresJsSession

/** The transaction type of `sql`, with the types you gave it. */
export type PostgresJsTransactionOf<S extends PostgresJs> = S extends {
  begin(options: string, work: (tx: infer T extends PostgresJsTransaction) => unknown): unknown
}
  ? T
  : PostgresJsTransaction

const calls: Calls = {
  handle: 'the transaction of postgres.js',
  open: 'sql.begin((tx) => ...)',
  db: 'sql',
}

/**
 * Uses postgres.js: `sql` for transactions, and the function `postgres` itself for the sessions of migrate, wake-ups and
 * relays, or another client such as `fromPg(pool)`.
 *
 * Why the function: a connection of `sql.reserve()` that breaks while it is idle is not told to anyone, and the next
 * statement on it ends the process or lands in a session of somebody else. With the function each session is a client of
 * its own with the options of `sql`, outside the pool of `sql`: a relay opens up to five.
 */
export function fromPostgresJs<S extends PostgresJs>(
  sql: S,
  postgres?: PostgresJsFactory | SqlConnector,
): SqlClient<PostgresJsTransaction, PostgresJs | PostgresJsTransaction, PostgresJsTransactionOf<S>> {
  /** A transaction that is over goes on to answer, on whatever its connection is used for next. */
  const over = new WeakSet<object>()

  function session(tx: PostgresJsTransaction): SqlSession {
    if (!isSession(tx)) throw notATransaction(calls, 'something without an unsafe method')
    if ('begin' in tx) throw notATransaction(calls, 'sql itself, whose statements run on any connection')
    if (over.has(tx)) throw notInTransaction(calls)
    return guardedSession(textQuery(tx), calls)
  }

  return {
    name: 'postgres.js',
    session,
    transaction(db, work) {
      // In a transaction of the caller's a savepoint.
      const begin = beginner<PostgresJsTransactionOf<S>>(db, 'savepoint' in db ? 'savepoint' : 'begin')
      return libraryTransaction(begin, { work, check, onOver: (tx) => over.add(tx) })
    },
    ...(typeof postgres === 'function'
      ? { connect: () => connectPostgresJs(postgres, sql.options) }
      : lentSessions(postgres, 'fromPostgresJs(sql)', 'fromPostgresJs(sql, postgres)')),
  }
}

function isSession(value: unknown): value is PostgresJsSession {
  return typeof value === 'function' && 'unsafe' in value && 'typed' in value
}

function check(tx: PostgresJsSession): Promise<void> {
  return refuseSwallowed(textQuery(tx))
}

function textQuery(tx: PostgresJsSession): TextQuery {
  return async (text, values) => (await runPostgresJs(tx, { text, values })).rows.map(([column]) => column)
}
