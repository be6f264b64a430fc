import type { SqlClient, SqlConnector } from '../contract/sql-client.ts'
import { guardedSession, refuseSwallowed, type TextQuery } from './guarded-session.ts'
import { lentSessions } from './lent-sessions.ts'
import { beginner, libraryTransaction } from './library-transaction.ts'
import { type Calls, notATransaction } from './refusals.ts'

/** The part of a Kysely instance that is used. */
export interface KyselyDb {
  readonly isTransaction: boolean
  transaction(): { execute(...given: never[]): unknown }
}

/** The part of a Kysely transaction that is used; a controlled one has it too. */
export interface KyselyTransaction {
  readonly isTransaction: true
  withoutPlugins(): { executeQuery(query: never): Promise<{ readonly rows: readonly unknown[] }> }
}

/** The transaction type of a Kysely instance, with its tables. */
export type KyselyTransactionOf<K extends KyselyDb> = K extends {
  transaction(): { execute(work: (trx: infer T extends KyselyTransaction) => Promise<unknown>): unknown }
}
  ? T
  : KyselyTransaction

const calls: Calls = {
  handle: 'a transaction of Kysely',
  open: 'db.transaction().execute((trx) => ...)',
  db: 'db',
}

/**
 * Uses Kysely for transactions, and another client for the sessions of migrate, wake-ups and relays: `fromPg(pool)` with
 * the pool of the dialect, since Kysely has only parsed rows to give, which lose columns of the same name.
 */
export function fromKysely<K extends KyselyDb>(
  _db: K,
  connector?: SqlConnector,
): SqlClient<KyselyTransaction, KyselyDb, KyselyTransactionOf<K>> {
  return {
    name: 'kysely',
    session(tx) {
      const isTransaction = (tx as { readonly isTransaction?: unknown } | null | undefined)?.isTransaction
      if (isTransaction === false) throw notATransaction(calls, 'db itself, whose statements run on any connection')
      if (isTransaction !== true) throw notATransaction(calls, 'something that is no transaction')
      return guardedSession(textQuery(tx), calls)
    },
    transaction: (db, work) => libraryTransaction(beginner(db.transaction(), 'execute'), { work, check }),
    ...lentSessions(connector, 'fromKysely(db)', 'fromKysely(db, fromPg(pool))'),
  }
}

function check(trx: KyselyTransaction): Promise<void> {
  return refuseSwallowed(textQuery(trx))
}

/** Without plugins, which rename columns; the node is what loggers look at. */
function textQuery(trx: KyselyTransaction): TextQuery {
  return async (sql, values) => {
    const query = { kind: 'RawNode', sqlFragments: [sql], parameters: [] }
    const compiled = { sql, parameters: values, query, queryId: { queryId: 'inorder' } }
    const { rows } = await trx.withoutPlugins().executeQuery(compiled as never)
    return rows.map((row) => Object.values(row as object)[0] as unknown)
  }
}
