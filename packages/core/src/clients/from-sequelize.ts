import type { SqlClient } from '../contract/sql-client.ts'
import { guardedSession, refuseSwallowed, type TextQuery } from './guarded-session.ts'
import { libraryTransaction } from './library-transaction.ts'
import { ownedPgConnection, type PgConnection } from './pg-connection.ts'
import { type Calls, notATransaction, notInTransaction } from './refusals.ts'

/** The part of Sequelize that is used. */
export interface SequelizeDb {
  readonly config: { readonly pool?: { readonly max?: number | undefined } | undefined }
  readonly connectionManager: {
    getConnection(options: { readonly type: 'write' }): Promise<object>
    destroyConnection(connection: object): Promise<void>
  }
  query(text: string, options: never): Promise<unknown>
  transaction(...given: never[]): unknown
}

/** The part of a transaction of Sequelize that is used. */
export interface SequelizeTransaction {
  commit(): Promise<void>
  rollback(): Promise<void>
  afterCommit(...given: never[]): void
}

/** The transaction type of a Sequelize instance. */
export type SequelizeTransactionOf<S extends SequelizeDb> = S extends {
  transaction(options?: never): Promise<infer T extends SequelizeTransaction>
}
  ? T
  : SequelizeTransaction

type BeginWith<Tx> = <T>(options: object, work: (tx: Tx) => Promise<T>) => Promise<T>

const calls: Calls = {
  handle: 'the transaction object of Sequelize',
  open: 'sequelize.transaction((transaction) => ...)',
  db: 'sequelize',
}

/** What Sequelize takes when nobody says otherwise. */
const defaultPoolMax = 5

/**
 * Uses Sequelize 6 with the dialect `postgres`. The sessions of migrate, wake-ups and relays come out of its pool: a
 * relay keeps up to five, which is all of its default size, so give it `pool: { max }` with five to spare.
 */
export function fromSequelize<S extends SequelizeDb>(
  sequelize: S,
): SqlClient<SequelizeTransaction, SequelizeDb | SequelizeTransaction, SequelizeTransactionOf<S>> {
  const { connectionManager } = sequelize

  function textQuery(transaction: SequelizeTransaction): TextQuery {
    return async (text, values) => {
      const options = { transaction, bind: values, type: 'SELECT', raw: true, plain: false, nest: false }
      const rows = (await sequelize.query(text, options as never)) as readonly object[]
      return rows.map((row) => Object.values(row)[0] as unknown)
    }
  }

  /** A transaction that the caller has ended by hand is not looked at. */
  async function check(transaction: SequelizeTransaction): Promise<void> {
    if (!isFinished(transaction)) await refuseSwallowed(textQuery(transaction))
  }

  return {
    name: 'sequelize',
    maxSessions: sequelize.config.pool?.max ?? defaultPoolMax,
    session(tx) {
      if (!isTransaction(tx)) throw notATransaction(calls, 'something that is no transaction')
      if (isFinished(tx)) throw notInTransaction(calls)
      return guardedSession(textQuery(tx), calls)
    },
    transaction(db, work) {
      // In a transaction of the caller's a savepoint.
      const options = isTransaction(db) ? { transaction: db } : {}
      const given: object = isTransaction(db) ? sequelize : db
      const on = given as { transaction: BeginWith<SequelizeTransactionOf<S>> }
      return libraryTransaction((run) => on.transaction(options, run), { work, check })
    },
    async connect() {
      const client = (await connectionManager.getConnection({ type: 'write' })) as PgConnection
      // A pool that has seen the connection break has thrown it away by itself.
      return ownedPgConnection(client, () => connectionManager.destroyConnection(client).catch(ignore))
    },
  }
}

function isTransaction(value: unknown): value is SequelizeTransaction {
  const { commit, rollback, afterCommit } = (value as Partial<SequelizeTransaction> | null | undefined) ?? {}
  return [commit, rollback, afterCommit].every((each) => typeof each === 'function')
}

/** It says `commit` or `rollback` from the moment in which that is sent. */
function isFinished(transaction: SequelizeTransaction): boolean {
  return (transaction as { readonly finished?: unknown }).finished !== undefined
}

function ignore(): void {}
