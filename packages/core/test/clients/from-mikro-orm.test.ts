import { EntitySchema, MikroORM, type SqlEntityManager } from '@mikro-orm/postgresql'
import { fromMikroOrm } from '../../src/clients/from-mikro-orm.ts'
import { clientPromises } from './client-promises.ts'

const orders = new EntitySchema<{ id: number }>({
  name: 'order',
  tableName: 'orders',
  properties: { id: { type: 'number', primary: true } },
})
const inside = (tx: unknown): SqlEntityManager => tx as SqlEntityManager

/** A pool of Knex reports each connection that it finds ended. */
const quiet = { log: { warn: () => undefined } }

clientPromises(
  'MikroORM',
  { sessions: 'own', savepoints: (tx, work) => inside(tx).transactional((inner) => work(inner)) },
  async (url, max) => {
    const orm = await MikroORM.init({ clientUrl: url, entities: [orders], pool: { min: 0, max }, driverOptions: quiet })
    const em = orm.em.fork()
    return {
      client: fromMikroOrm(orm.em),
      db: em,
      begin: (work) => em.transactional((inner) => work(inner)),
      insertOrder: (tx, id) => inside(tx).insert(orders, { id }),
      run: (tx, text) => inside(tx).execute(text),
      outside: { 'the entity manager': ['NOT_IN_TRANSACTION', em], 'the global one': ['NOT_IN_TRANSACTION', orm.em] },
      close: () => orm.close(),
    }
  },
)
