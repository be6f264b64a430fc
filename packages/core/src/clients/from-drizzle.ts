import type { SqlClient, SqlConnector } from '../contract/sql-client.ts'
import { fromPg, isPgPool } from './from-pg.ts'
import { guardedSession, refuseSwallowed, type TextQuery } from './guarded-session.ts'
import { lentSessions } from './lent-sessions.ts'
import { beginner, libraryTransaction } from './library-transaction.ts'
import { type Calls, notATransaction, notInTransaction } from './refusals.ts'

/** The part of a Drizzle database that is used, with any driver for PostgreSQL that has transactions. */
export interface DrizzleDb {
  execute(query: never): PromiseLike<unknown>
  transaction(...given: never[]): unknown
}

/** The part of a Drizzle transaction that is used. */
export interface DrizzleTransaction {
  execute(query: never): PromiseLike<unknown>
  rollback(): never
}

/** The transaction type of a Drizzle database, with its schema. */
export type DrizzleTransactionOf<D extends DrizzleDb> = D extends {
  transaction(work: (tx: infer T extends DrizzleTransaction) => Promise<unknown>): unknown
}
  ? T
  : DrizzleTransaction

const calls: Calls = {
  handle: 'a transaction of Drizzle',
  open: 'db.transaction((tx) => ...)',
  db: 'db',
}

/**
 * Uses Drizzle for transactions, and its `pg` pool for the sessions of migrate, wake-ups and relays. A database on another
 * driver needs another client for those: `fromPg(pool)`, or `fromPostgresJs(sql, postgres)`.
 */
export function fromDrizzle<D extends DrizzleDb>(
  db: D,
  connector?: SqlConnector,
): SqlClient<DrizzleTransaction, DrizzleDb, DrizzleTransactionOf<D>> {
  /** A transaction that is over goes on to answer, on whatever its connection is used for next. */
  const over = new WeakSet<object>()
  const { $client: client } = db as { readonly $client?: unknown }
  const own = isPgPool(client) ? fromPg(client) : undefined

  return {
    name: 'drizzle',
    session(tx) {
      if (typeof (tx as Partial<DrizzleTransaction> | null)?.execute !== 'function')
        throw notATransaction(calls, 'something without an execute method')
      // Only a transaction can be rolled back.
      if (typeof (tx as Partial<DrizzleTransaction>).rollback !== 'function')
        throw notATransaction(calls, 'db itself, whose statements run on any connection')
      if (over.has(tx)) throw notInTransaction(calls)
      return guardedSession(textQuery(tx), calls)
    },
    transaction: (given, work) =>
      libraryTransaction(beginner(given, 'transaction'), { work, check, onOver: (tx) => over.add(tx) }),
    ...lentSessions(
      connector ?? own,
      'fromDrizzle(db) on this driver',
      'fromDrizzle(db, fromPg(pool)) or fromDrizzle(db, fromPostgresJs(sql, postgres))',
    ),
  }
}

function check(tx: DrizzleTransaction): Promise<void> {
  return refuseSwallowed(textQuery(tx))
}

/** `execute` takes whatever has a `getSQL` that yields a `toQuery`; a driver answers with the rows or an object with them. */
function textQuery(tx: DrizzleTransaction): TextQuery {
  return async (sql, values) => {
    const query = { getSQL: () => ({ toQuery: () => ({ sql, params: values }) }) }
    const answer = (await tx.execute(query as never)) as readonly object[] | { readonly rows: readonly object[] }
    const rows = 'rows' in answer ? answer.rows : answer
    return [...rows].map((row) => Object.values(row)[0] as unknown)
  }
}
