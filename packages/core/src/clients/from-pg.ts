import type { SqlClient, SqlSession } from '../contract/sql-client.ts'
import { sqlState } from '../contract/sql-state.ts'
import { guardedSession, type TextQuery } from './guarded-session.ts'
import { ownedPgConnection, type PgConnection } from './pg-connection.ts'
import { type PgClient, queryPg, runPg } from './pg-statement.ts'
import { type Calls, failedTransaction, notATransaction, notInTransaction, swallowedFailure } from './refusals.ts'

export type { PgConnection } from './pg-connection.ts'
export type { PgClient, PgQuery, PgResult } from './pg-statement.ts'

/** The part of a `pg` pool that is used. */
export interface PgPool {
  readonly totalCount: number
  readonly options: { readonly max?: number }
  connect(): Promise<PgPoolClient>
}

export interface PgPoolClient extends PgConnection {
  release(destroy?: boolean): void
  removeListener(event: 'error', listener: (error: Error) => void): unknown
}

/** The client type of a pool, so that a transaction's business statements keep their types. It is not yours to release. */
export type ClientOf<P extends PgPool> = P extends {
  connect: { (): Promise<infer C extends PgPoolClient>; (callback: never): unknown }
}
  ? Omit<C, 'release'>
  : P extends { connect(): Promise<infer C extends PgPoolClient> }
    ? Omit<C, 'release'>
    : PgClient

const calls: Calls = {
  handle: 'the pg client that ran BEGIN',
  open: 'BEGIN on a client of pool.connect(), awaited',
  db: 'pool',
}

/**
 * Uses the `pg` library: a pool for the relay, and the client that ran BEGIN for `enqueue`.
 *
 * A relay takes up to five clients out of the pool and keeps them, so give it a pool of its own, or one that has five
 * to spare.
 */
export function fromPg<P extends PgPool>(pool: P): SqlClient<PgClient, PgPool | PgClient, ClientOf<P>> {
  /** Clients whose transaction is being ended here: until the server answers, they say that it is still open. */
  const ending = new WeakSet<PgClient>()

  return {
    name: 'pg',
    ...(pool.options.max === undefined ? {} : { maxSessions: pool.options.max }),
    session(tx) {
      refuseNoClient(tx)
      if (ending.has(tx)) throw notInTransaction(calls)
      return sessionOn(tx)
    },
    async transaction(db, work) {
      const run = (client: PgClient, bounds: Bounds): ReturnType<typeof work> =>
        inTransaction(client, (tx) => work(tx as ClientOf<P>), bounds, ending)
      if (!isPgPool(db)) {
        const state = await transactionState(db)
        if (state === 'failed') throw failedTransaction()
        // A transaction of the caller's decides: BEGIN would be ignored in it, and COMMIT would end it.
        return run(db, state === 'open' ? nested : whole)
      }
      const client = await takeClient(db)
      let broken = true
      try {
        const result = await run(client, whole)
        broken = false
        return result
      } catch (error) {
        broken = client.getTransactionStatus?.() !== 'I'
        throw error
      } finally {
        client.removeListener('error', ignore)
        client.release(broken)
      }
    },
    async connect() {
      return ownedPgConnection(await takeClient(pool), (client) => client.release(true))
    },
  }
}

type TakeClient = (error: Error | undefined, client: PgPoolClient | undefined) => void

/**
 * A connection that breaks between two statements says so in an event, which would end the process if nobody listened;
 * the next statement fails with it. The pool stops listening when it gives a client away, and a server that ends a new
 * session can say so in the same breath: when a promise is awaited, the event has passed. The callback comes in time.
 */
function takeClient(pool: PgPool): Promise<PgPoolClient> {
  return new Promise((resolve, reject) => {
    const taken = (client: PgPoolClient): void => {
      client.on('error', ignore)
      resolve(client)
    }
    const given: unknown = (pool as { connect(callback: TakeClient): unknown }).connect((error, client) => {
      if (client === undefined) reject(error ?? new Error('the pool gave no client'))
      else taken(client)
    })
    // A pool of somebody's own may know promises only.
    if (given instanceof Promise) (given as Promise<PgPoolClient>).then(taken, reject)
  })
}

function refuseNoClient(tx: PgClient): void {
  if (typeof tx !== 'object' || (tx as unknown) === null || typeof (tx as Partial<PgClient>).query !== 'function') {
    throw notATransaction(calls, 'something without a query method')
  }
  if (isPgPool(tx)) throw notATransaction(calls, 'a pg Pool, whose statements run on any connection')
}

/**
 * A statement that is sent in the same tick in which the session was asked for is in front of whatever the caller sends
 * next, so it is in the transaction if the client says that one is open and has nothing on its way. Any other statement
 * carries the proof.
 */
function sessionOn(tx: PgClient): SqlSession {
  const status = tx.getTransactionStatus?.()
  if (status === 'E') throw failedTransaction()
  if (status === 'I') throw notInTransaction(calls)
  const guarded = guardedSession(textQuery(tx), calls)
  let prompt = status === 'T' && (tx as { readonly readyForQuery?: boolean }).readyForQuery !== false
  queueMicrotask(() => {
    prompt = false
  })
  return {
    run(statement) {
      if (!prompt) return guarded.run(statement)
      prompt = false
      return runPg(tx, statement)
    },
  }
}

function textQuery(client: PgClient): TextQuery {
  return async (text, values) => (await queryPg(client, { text, values })).rows.map(([column]) => column)
}

type TransactionState = 'open' | 'failed' | 'none'

/** Older versions of pg cannot tell; a savepoint is refused outside a transaction (25P01) and costs nothing inside. */
async function transactionState(client: PgClient): Promise<TransactionState> {
  const status = client.getTransactionStatus?.()
  if (status === 'T') return 'open'
  if (status === 'E') return 'failed'
  if (status === 'I') return 'none'
  try {
    await runPg(client, { text: 'savepoint inorder_probe', values: [] })
    await runPg(client, { text: 'release savepoint inorder_probe', values: [] })
    return 'open'
  } catch (error) {
    const state = sqlState(error)
    if (state === '25P01') return 'none'
    if (state === '25P02') return 'failed'
    throw error
  }
}

interface Bounds {
  readonly begin: string
  readonly commit: string
  readonly rollback: readonly string[]
}

const whole: Bounds = { begin: 'begin', commit: 'commit', rollback: ['rollback'] }
const nested: Bounds = {
  begin: 'savepoint inorder_work',
  commit: 'release savepoint inorder_work',
  rollback: ['rollback to savepoint inorder_work', 'release savepoint inorder_work'],
}

async function inTransaction<T>(
  client: PgClient,
  work: (tx: PgClient) => Promise<T>,
  bounds: Bounds,
  ending: WeakSet<PgClient>,
): Promise<T> {
  const { begin, commit, rollback } = bounds
  await runPg(client, { text: begin, values: [] })
  try {
    const result = await work(client)
    if (bounds === whole) ending.add(client)
    // COMMIT of a transaction that failed inside answers ROLLBACK without an error: nothing was committed.
    const failed =
      client.getTransactionStatus?.() === 'E' ||
      (await queryPg(client, { text: commit, values: [] })).command === 'ROLLBACK'
    if (failed) throw swallowedFailure()
    return result
  } catch (error) {
    if (bounds === whole) ending.add(client)
    for (const text of rollback) await runPg(client, { text, values: [] }).catch(() => undefined)
    throw error
  } finally {
    ending.delete(client)
  }
}

function ignore(): void {}

/** A client of one connection has a transaction status and connects without giving anything. */
export function isPgPool(value: unknown): value is PgPool {
  if (typeof value !== 'object' || value === null) return false
  return 'totalCount' in value && 'connect' in value && !('getTransactionStatus' in value)
}
