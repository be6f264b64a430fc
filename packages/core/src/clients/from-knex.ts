import type { SqlClient } from '../contract/sql-client.ts'
import { connectKnex, knexSession, type KnexTransaction, knexSessions, refuseSwallowedKnex } from './knex-session.ts'
import { type Calls, notATransaction } from './refusals.ts'

/** The part of Knex that is used. */
export interface KnexDb {
  readonly client: unknown
  transaction<T>(work: (trx: never) => Promise<T>): Promise<T>
}

/** The transaction type of a Knex instance. */
export type KnexTransactionOf<K extends KnexDb> = K extends {
  transaction(config?: never): Promise<infer T extends KnexTransaction>
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
    transaction(db, work) {
      return db.transaction(async (trx: KnexTransactionOf<K>) => {
        const result = await work(trx)
        await refuseSwallowedKnex(trx)
        return result
      })
    },
    connect: () => connectKnex(knex),
  }
}
