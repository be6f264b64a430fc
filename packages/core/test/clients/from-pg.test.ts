import type pg from 'pg'
import { fromPg } from '../../src/clients/from-pg.ts'
import { clientPromises } from './client-promises.ts'
import { patientPool } from './library.ts'

const inside = (tx: unknown): pg.PoolClient => tx as pg.PoolClient

async function between(tx: unknown, work: (tx: unknown) => Promise<void>, [begin, commit, rollback]: Bounds) {
  await inside(tx).query(begin)
  try {
    await work(tx)
  } catch (error) {
    await inside(tx).query(rollback)
    throw error
  }
  await inside(tx).query(commit)
}

type Bounds = readonly [begin: string, commit: string, rollback: string]

clientPromises(
  'pg',
  {
    sessions: 'own',
    savepoints: (tx, work) => between(tx, work, ['savepoint s', 'release savepoint s', 'rollback to savepoint s']),
  },
  (url, max) => {
    const pool = patientPool(url, max)
    return Promise.resolve({
      client: fromPg(pool),
      db: pool,
      async begin(work) {
        const client = await pool.connect()
        try {
          await between(client, work, ['begin', 'commit', 'rollback'])
        } finally {
          client.release()
        }
      },
      insertOrder: (tx, id) => inside(tx).query('insert into orders values ($1)', [id]),
      run: (tx, sql) => inside(tx).query(sql),
      outside: { 'the pool': ['NOT_A_TRANSACTION', pool] },
      close: () => pool.end(),
    })
  },
)
