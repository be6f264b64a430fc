import { OutboxError } from '../contract/errors.ts'
import type { RowSet, SqlClient, SqlConnection, SqlSession, Statement } from '../contract/sql-client.ts'
import { sqlState } from '../contract/sql-state.ts'

/** The part of a `pg` client that is used; a `Client` and a `PoolClient` both have it. */
export interface PgClient {
  query(config: PgQuery): Promise<PgResult>
  getTransactionStatus?(): string | null
}

/** The part of a `pg` pool that is used. */
export interface PgPool {
  readonly totalCount: number
  readonly options: { readonly max?: number }
  connect(): Promise<PgPoolClient>
}

export interface PgPoolClient extends PgClient {
  release(destroy?: boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'end', listener: () => void): unknown
  on(event: 'notification', listener: (message: { channel: string }) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
}

export interface PgQuery {
  readonly name?: string
  readonly text: string
  readonly values: unknown[]
  readonly rowMode: 'array'
  readonly types: { getTypeParser(type: number): (text: string) => unknown }
}

export interface PgResult {
  readonly command: string
  readonly rows: unknown[][]
  readonly rowCount: number | null
}

/** The client type of a pool, so that a transaction's business statements keep their types. It is not yours to release. */
export type ClientOf<P extends PgPool> = P extends {
  connect: { (): Promise<infer C extends PgPoolClient>; (callback: never): unknown }
}
  ? Omit<C, 'release'>
  : P extends { connect(): Promise<infer C extends PgPoolClient> }
    ? Omit<C, 'release'>
    : PgClient

/**
 * Uses the `pg` library: a pool for the relay, and the client that ran BEGIN for `enqueue`.
 *
 * A relay takes up to five clients out of the pool and keeps them, so give it a pool of its own, or one that has five
 * to spare.
 */
export function fromPg<P extends PgPool>(pool: P): SqlClient<PgClient, PgPool | PgClient, ClientOf<P>> {
  return {
    name: 'pg',
    ...(pool.options.max === undefined ? {} : { maxSessions: pool.options.max }),
    session,
    async transaction(db, work) {
      if (!isPool(db)) {
        const state = await transactionState(db)
        refuseFailed(state)
        // A transaction of the caller's decides: BEGIN would be ignored in it, and COMMIT would end it.
        return inTransaction(db, (tx) => work(tx as ClientOf<P>), state === 'open' ? nested : whole)
      }
      const client = await db.connect()
      // A connection that breaks between two statements says so in an event, which would end the process if nobody
      // listened. The next statement fails with it.
      client.on('error', ignore)
      let broken = true
      try {
        const result = await inTransaction(client, (tx) => work(tx as ClientOf<P>), whole)
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
      return connection(await pool.connect())
    },
  }
}

async function session(tx: PgClient): Promise<SqlSession> {
  if (typeof tx !== 'object' || (tx as unknown) === null || typeof (tx as Partial<PgClient>).query !== 'function') {
    throw new OutboxError(
      'NOT_A_TRANSACTION',
      'enqueue needs the pg client that ran BEGIN as its first argument; it got something without a query method.',
    )
  }
  if (isPool(tx)) {
    throw new OutboxError(
      'NOT_A_TRANSACTION',
      'enqueue got a pg Pool, whose statements run on any connection. Take a client with pool.connect(), run BEGIN on it and pass that client, or use outbox.transaction(pool, (tx) => ...).',
    )
  }
  const state = await transactionState(tx)
  refuseFailed(state)
  if (state === 'none') {
    throw new OutboxError(
      'NOT_IN_TRANSACTION',
      'enqueue was called outside a transaction, so the event and the business rows could not commit together. Run BEGIN on this client first and await it, or use outbox.transaction(pool, (tx) => ...).',
    )
  }
  return { run: (statement) => runOn(tx, statement) }
}

type TransactionState = 'open' | 'failed' | 'none'

/** Older versions of pg cannot tell; a savepoint is refused outside a transaction (25P01) and costs nothing inside. */
async function transactionState(client: PgClient): Promise<TransactionState> {
  const status = client.getTransactionStatus?.()
  if (status === 'T') return 'open'
  if (status === 'E') return 'failed'
  if (status === 'I') return 'none'
  try {
    await runOn(client, { text: 'savepoint inorder_probe', values: [] })
    await runOn(client, { text: 'release savepoint inorder_probe', values: [] })
    return 'open'
  } catch (error) {
    const state = sqlState(error)
    if (state === '25P01') return 'none'
    if (state === '25P02') return 'failed'
    throw error
  }
}

function refuseFailed(state: TransactionState): void {
  if (state !== 'failed') return
  throw new OutboxError(
    'NOT_IN_TRANSACTION',
    'The transaction has already failed, so the event could only be rolled back with it. Run ROLLBACK and start again.',
  )
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
  { begin, commit, rollback }: Bounds,
): Promise<T> {
  await runOn(client, { text: begin, values: [] })
  try {
    const result = await work(client)
    // COMMIT of a transaction that failed inside answers ROLLBACK without an error: nothing was committed.
    const failed =
      client.getTransactionStatus?.() === 'E' ||
      (await query(client, { text: commit, values: [] })).command === 'ROLLBACK'
    if (failed) {
      throw new OutboxError(
        'NOT_IN_TRANSACTION',
        'A statement of the transaction failed and its error was swallowed, so nothing can be committed. Let the error of that statement reach the caller.',
      )
    }
    return result
  } catch (error) {
    for (const text of rollback) await runOn(client, { text, values: [] }).catch(() => undefined)
    throw error
  }
}

function connection(client: PgPoolClient): SqlConnection {
  let finish: (reason: Error | undefined) => void
  const ended = new Promise<Error | undefined>((resolve) => {
    finish = resolve
  })
  client.on('error', (error) => {
    finish(error)
  })
  client.on('end', () => {
    finish(new Error('the connection ended'))
  })
  let closed = false
  return {
    ended,
    run: (statement) => runOn(client, statement),
    onNotification(listener) {
      client.on('notification', ({ channel }) => {
        listener(channel)
      })
    },
    close() {
      finish(undefined)
      if (!closed) client.release(true)
      closed = true
      return Promise.resolve()
    },
  }
}

function query(client: PgClient, { name, text, values }: Statement): Promise<PgResult> {
  return client.query({
    ...(name === undefined ? {} : { name }),
    text,
    values: [...values],
    rowMode: 'array',
    types: asText,
  })
}

async function runOn(client: PgClient, statement: Statement): Promise<RowSet> {
  const result = await query(client, statement)
  return { rows: result.rows as RowSet['rows'], affected: result.rowCount ?? 0 }
}

const byteaType = 17

/** Leaves every value as the server's text, whatever parsers the application has set for itself. */
const asText: PgQuery['types'] = {
  getTypeParser: (type) => (type === byteaType ? bytes : same),
}

function ignore(): void {}

function same(text: string): string {
  return text
}

/** A role may have `bytea_output = 'escape'`; no statement relies on a setting of the session. */
function bytes(text: string): Uint8Array {
  if (text.startsWith('\\x')) return Buffer.from(text.slice(2), 'hex')
  const unescaped = text.replace(/\\(\\|[0-7]{3})/g, (_, escape: string) =>
    escape === '\\' ? escape : String.fromCharCode(Number.parseInt(escape, 8)),
  )
  return Buffer.from(unescaped, 'latin1')
}

function isPool(value: object): value is PgPool {
  return 'totalCount' in value && 'connect' in value && !('getTransactionStatus' in value)
}
