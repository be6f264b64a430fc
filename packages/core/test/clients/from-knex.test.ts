import knexFactory, { type Knex } from 'knex'
import { fromKnex } from '../../src/clients/from-knex.ts'
import { clientPromises } from './client-promises.ts'

const inside = (tx: unknown): Knex.Transaction => tx as Knex.Transaction

clientPromises(
  'Knex',
  { sessions: 'own', savepoints: (tx, work) => inside(tx).transaction((inner) => work(inner)) },
  (url, max) => {
    const knex = knexFactory({ client: 'pg', connection: url, pool: { min: 0, max }, log: { warn: () => undefined } })
    return Promise.resolve({
      client: fromKnex(knex),
      db: knex,
      begin: (work) => knex.transaction((trx) => work(trx)),
      insertOrder: (tx, id) => inside(tx)('orders').insert({ id }),
      run: (tx, text) => inside(tx).raw(text),
      outside: { knex: ['NOT_A_TRANSACTION', knex], 'a query builder': ['NOT_A_TRANSACTION', knex('orders')] },
      close: () => knex.destroy(),
    })
  },
)
