import type { RowSet, SqlConnection, SqlSession, Statement } from '../contract/sql-client.ts'
import { sqlState } from '../contract/sql-state.ts'
import { asParameter } from './array-literal.ts'
import { refuseSwallowed } from './guarded-session.ts'
import { ownedPgConnection, type PgConnection } from './pg-connection.ts'
import { asText, type PgResult, rowsOf } from './pg-statement.ts'
import { type Calls, explainStatement, notInTransaction } from './refusals.ts'

/** The part of a Knex transaction that is used. */
export interface KnexTransaction {
  readonly isTransaction?: boolean
  isCompleted(): boolean
  raw(sql: string, bindings: never): KnexQuery
}

/** A query of Knex that has not run yet. */
export interface KnexQuery {
  options(options: Readonly<Record<string, unknown>>): PromiseLike<unknown>
}

/**
 * A session in a transaction of Knex. Knex itself refuses a statement once COMMIT or ROLLBACK has been sent, and passes
 * the options on to `pg`, so no statement needs to carry the proof.
 */
export function knexSession(trx: KnexTransaction, calls: Calls): SqlSession {
  if (trx.isCompleted()) throw notInTransaction(calls)
  return {
    async run(statement) {
      try {
        return await runKnex(trx, statement)
      } catch (error) {
        if (sqlState(error) === undefined && trx.isCompleted()) throw notInTransaction(calls, error)
        throw explainStatement(error, calls)
      }
    },
  }
}

/** A transaction that the caller has ended by hand is not looked at. */
export async function refuseSwallowedKnex(trx: KnexTransaction): Promise<void> {
  if (trx.isCompleted()) return
  await refuseSwallowed(async (text, values) => (await runKnex(trx, { text, values })).rows)
}

async function runKnex(trx: KnexTransaction, { text, values }: Statement): Promise<RowSet> {
  const bindings: unknown[] = []
  const sql = text.replace(/\?|\$(\d+)/g, (found, number?: string) => {
    if (number === undefined) return `\\${found}`
    bindings.push(asParameter(values[Number(number) - 1]))
    return '?'
  })
  const result = (await trx.raw(sql, bindings as never).options({ ...asText })) as PgResult
  // A `postProcessResponse` that renames columns takes a list for an object.
  return rowsOf({ ...result, rows: result.rows.map((row) => Object.values(row)) })
}

interface KnexPool {
  readonly pool?: { readonly max?: number }
  acquireConnection(): Promise<PgConnection & { end(): Promise<void> }>
  releaseConnection(connection: object): Promise<unknown>
}

export function knexSessions({ client }: { readonly client: unknown }): number {
  return (client as KnexPool).pool?.max ?? Infinity
}

/** A connection of Knex's pool. It is ended and not reused, and the pool makes another one when it needs one. */
export async function connectKnex({ client }: { readonly client: unknown }): Promise<SqlConnection> {
  const pool = client as KnexPool
  const connection = await pool.acquireConnection()
  const gone = new Promise<void>((resolve) => connection.on('end', resolve))
  return ownedPgConnection(connection, () => {
    void connection.end().catch(ignore)
    // Only once it is gone, and the pool knows: whoever came next would get a connection that is about to end.
    void gone.then(() => pool.releaseConnection(connection)).catch(ignore)
  })
}

function ignore(): void {}
