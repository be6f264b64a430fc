import { DataTypes, Sequelize, type Transaction } from 'sequelize'
import { fromSequelize } from '../../src/clients/from-sequelize.ts'
import { clientPromises } from './client-promises.ts'

clientPromises(
  'Sequelize',
  {
    sessions: 'own',
    savepoints: (tx, work) =>
      sequelizeOf(tx).transaction({ transaction: tx as Transaction }, (transaction) => work(transaction)),
  },
  (url, max) => {
    const sequelize = new Sequelize(url, { logging: false, pool: { max } })
    const fields = { id: { type: DataTypes.BIGINT, primaryKey: true } }
    const orders = sequelize.define('order', fields, { tableName: 'orders', timestamps: false })
    return Promise.resolve({
      client: fromSequelize(sequelize),
      db: sequelize,
      begin: (work) => sequelize.transaction((transaction) => work(transaction)),
      insertOrder: (tx, id) => orders.create({ id }, { transaction: tx as Transaction }),
      run: (tx, text) => sequelize.query(text, { transaction: tx as Transaction }),
      outside: { sequelize: ['NOT_A_TRANSACTION', sequelize] },
      close: () => sequelize.close(),
    })
  },
)

function sequelizeOf(tx: unknown): Sequelize {
  return (tx as { readonly sequelize: Sequelize }).sequelize
}
