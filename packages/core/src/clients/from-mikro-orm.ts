import type { SqlClient } from '../contract/sql-client.ts'
import { connectKnex, knexSession, type KnexTransaction, knexSessions, refuseSwallowedKnex } from './knex-session.ts'
import { beginner, libraryTransaction } from './library-transaction.ts'
import { type Calls, notATransaction, notInTransaction } from './refusals.ts'

/** The part of an entity manager of MikroORM for PostgreSQL that is used. */
export interface MikroOrmEntityManager {
  isInTransaction(): boolean
  getTransactionContext(): unknown
  getKnex(): { readonly client: unknown }
  transactional(...given: never[]): unknown
}

const calls: Calls = {
  handle: 'the entity manager of a MikroORM transaction',
  open: 'em.transactional((em) => ...)',
  db: 'em',
}

/**
 * Uses MikroORM 6 for PostgreSQL: `orm.em`, or any fork of it. The sessions of migrate, wake-ups and relays come out of
 * its pool: a relay keeps up to five, so give it `pool: { max }` with five to spare (its default is 10).
 */
export function fromMikroOrm<E extends MikroOrmEntityManager>(em: E): SqlClient<MikroOrmEntityManager, E, E> {
  return {
    name: 'mikro-orm',
    get maxSessions() {
      return knexSessions(em.getKnex())
    },
    session(tx) {
      if (typeof (tx as Partial<MikroOrmEntityManager> | null | undefined)?.isInTransaction !== 'function')
        throw notATransaction(calls, 'something that is no entity manager')
      const trx = transactionOf(tx)
      if (trx === undefined) throw notInTransaction(calls)
      return knexSession(trx, calls)
    },
    transaction: (given, work) => libraryTransaction(beginner(given, 'transactional'), { work, check }),
    connect: () => connectKnex(em.getKnex()),
  }
}

async function check(em: MikroOrmEntityManager): Promise<void> {
  const trx = transactionOf(em)
  if (trx !== undefined) await refuseSwallowedKnex(trx)
}

/** What MikroORM keeps as the context of a transaction is a transaction of Knex. */
function transactionOf(em: MikroOrmEntityManager): KnexTransaction | undefined {
  return em.isInTransaction() ? (em.getTransactionContext() as KnexTransaction | undefined) : undefined
}
