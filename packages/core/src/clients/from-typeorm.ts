import { OutboxError } from '../contract/errors.ts'
import type { SqlClient } from '../contract/sql-client.ts'
import { fromPg, isPgPool, type PgPool } from './from-pg.ts'
import { guardedSession, refuseSwallowed, type TextQuery } from './guarded-session.ts'
import { beginner, libraryTransaction } from './library-transaction.ts'
import { type Calls, notATransaction, notInTransaction } from './refusals.ts'

/** The part of a query runner of TypeORM that is used. */
export interface TypeOrmQueryRunner {
  readonly isTransactionActive: boolean
  readonly isReleased: boolean
  query(text: string, values?: unknown[]): Promise<unknown>
}

/** The part of an entity manager of TypeORM that is used. */
export interface TypeOrmEntityManager {
  readonly queryRunner?: TypeOrmQueryRunner | undefined
  transaction(...given: never[]): unknown
}

/** What `transaction` begins on: a data source, or an entity manager, in whose transaction it is a savepoint. */
export interface TypeOrmDb {
  transaction(...given: never[]): unknown
}

/** The part of a data source of TypeORM that is used. */
export interface TypeOrmDataSource extends TypeOrmDb {
  readonly driver: object
}

/** The entity manager type of a data source. */
export type TypeOrmManagerOf<D extends TypeOrmDb> = D extends {
  transaction(isolation: never, work: (manager: infer M extends TypeOrmEntityManager) => Promise<unknown>): unknown
}
  ? M
  : TypeOrmEntityManager

const calls: Calls = {
  handle: 'the entity manager of a TypeORM transaction, or a query runner that started one',
  open: 'dataSource.transaction((manager) => ...)',
  db: 'dataSource',
}

/**
 * Uses TypeORM with `type: 'postgres'`. The sessions of migrate, wake-ups and relays come out of the pool of the data
 * source: a relay keeps up to five, so give it `extra: { max }` with five to spare, or a data source of its own.
 */
export function fromTypeOrm<D extends TypeOrmDataSource>(
  dataSource: D,
): SqlClient<TypeOrmEntityManager | TypeOrmQueryRunner, TypeOrmDb, TypeOrmManagerOf<D>> {
  return {
    name: 'typeorm',
    get maxSessions() {
      return poolOf(dataSource)?.options.max ?? Infinity
    },
    session(tx) {
      const runner = runnerOf(tx)
      if (runner === undefined)
        throw notATransaction(calls, 'something without a query runner, whose statements run on any connection')
      if (runner.isReleased || !runner.isTransactionActive) throw notInTransaction(calls)
      return guardedSession(textQuery(tx), calls)
    },
    transaction: (db, work) => libraryTransaction(beginner(db, 'transaction'), { work, check }),
    async connect() {
      const pool = poolOf(dataSource)
      if (pool === undefined) {
        throw new OutboxError(
          'OPTIONS_INVALID',
          "The TypeORM data source has no pool of pg. Give it type 'postgres' and await dataSource.initialize() first.",
        )
      }
      return fromPg(pool).connect()
    },
  }
}

function runnerOf(tx: unknown): TypeOrmQueryRunner | undefined {
  const runner = (tx as Partial<TypeOrmEntityManager> | null | undefined)?.queryRunner ?? tx
  return typeof runner === 'object' && runner !== null && 'isTransactionActive' in runner
    ? (runner as TypeOrmQueryRunner)
    : undefined
}

/** The driver calls its pool the master's, with and without replicas. */
function poolOf({ driver }: TypeOrmDataSource): PgPool | undefined {
  const { master } = driver as { readonly master?: unknown }
  return isPgPool(master) ? master : undefined
}

function check(tx: TypeOrmEntityManager): Promise<void> {
  return refuseSwallowed(textQuery(tx))
}

function textQuery(tx: TypeOrmEntityManager | TypeOrmQueryRunner): TextQuery {
  return async (text, values) => {
    const rows = (await runnerOf(tx)?.query(text, [...values])) as readonly object[]
    return rows.map((row) => Object.values(row)[0] as unknown)
  }
}
