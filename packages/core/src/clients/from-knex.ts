import type { SqlClient } from '../contract/sql-client.ts'
import { connectKnex, knexSession, type KnexTransaction, knexSessions, refuseSwallowedKnex } from './knex-session.ts'
import { beginner, libraryTransaction } from './library-transaction.ts'
import { type Calls, notATransaction } from './refusals.ts'

/** The part of Knex that is used. */
export interface KnexDb {
  readonly client: unknown
  transaction(...given: never[]): unknown
}

/** The transaction type of a Knex instance. */
export type KnexTransactionOf<K extends KnexDb> = K extends {
  transaction(work: (trx: infer T extends KnexTransaction) => unknown): unknown
}
  ? T
  : KnexTransaction

const calls: Calls = {
  handle: 'a transaction of Knex',
  open: 'knex.transaction((trx) => ...)',
  db: 'knex',
}

/**
 * Uses Knex with the client `pg`. The sessions of migrate, wake-ups and relays come out of its pool: a relay keeps up to
 * five, so give it `pool: { max }` with five to spare (its default is 10).
 */
export function fromKnex<K extends KnexDb>(knex: K): SqlClient<KnexTransaction, KnexDb, KnexTransactionOf<K>> {
  return {
    name: 'knex',
    maxSessions: knexSessions(knex),
    session(tx) {
      if (typeof tx !== 'function') throw notATransaction(calls, 'something that is no transaction')
      if ((tx as Partial<KnexTransaction>).isTransaction !== true)
        throw notATransaction(calls, 'knex itself, whose statements run on any connection')
      return knexSession(tx, calls)
    },
    transaction: (db, work) => libraryTransaction(beginner(db, 'transaction'), { work, check: refuseSwallowedKnex }),
    connect: () => connectKnex(knex),
  }
}
