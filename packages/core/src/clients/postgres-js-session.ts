import type { Row, RowSet, SqlConnection, Statement } from '../contract/sql-client.ts'
import { asParameter } from './array-literal.ts'
import { bytesOf } from './pg-statement.ts'

/** The part of postgres.js that runs statements. */
export interface PostgresJsSession {
  unsafe(text: string, values?: never[], options?: { prepare?: boolean }): { raw(): PromiseLike<unknown> }
  typed(value: string, type: number): unknown
}

/** The function `postgres`. */
export type PostgresJsFactory = (options: never) => PostgresJsSession & {
  end(options?: { timeout?: number }): Promise<void>
}

interface RawResult extends ReadonlyArray<readonly (Buffer | null)[]> {
  readonly columns?: readonly { readonly type: number }[]
  readonly count: number | null
}

const byteaType = 17
/** The type of a literal in quotes: the server decides what it is, and no serializer of the application's touches it. */
const unknownType = 705

export async function runPostgresJs(sql: PostgresJsSession, { name, text, values }: Statement): Promise<RowSet> {
  const parameters = values.map((value) => (value === null ? null : sql.typed(textOf(value), unknownType)))
  const query = sql.unsafe(text, parameters as never[], { prepare: name !== undefined })
  const result = (await query.raw()) as RawResult
  const types = (result.columns ?? []).map(({ type }) => type)
  return { rows: result.map((row) => readRow(row, types)), affected: result.count ?? 0 }
}

function readRow(row: readonly (Buffer | null)[], types: readonly number[]): Row {
  // By the columns and not by the row, which a `transform.row` of the application may have made another object of.
  return types.map((type, index) => {
    const text = row[index]?.toString() ?? null
    return text !== null && type === byteaType ? bytesOf(text) : text
  })
}

function textOf(value: unknown): string {
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value).toString('hex')}`
  return String(asParameter(value))
}

/**
 * A session of its own, outside every pool: it says when it ends, can be ended at once, and hears notifications. The
 * options are those that `sql` has worked out, which is how the library makes its own second client, for `listen`.
 */
export async function connectPostgresJs(postgres: PostgresJsFactory, options: object): Promise<SqlConnection> {
  let finish: (reason: Error | undefined) => void
  let over = false
  const ended = new Promise<Error | undefined>((resolve) => {
    finish = (reason) => {
      over = true
      resolve(reason)
    }
  })
  const listeners = new Set<(channel: string) => void>()
  const sql = postgres({
    ...options,
    max: 1,
    idle_timeout: null,
    max_lifetime: null,
    fetch_types: false,
    transform: { undefined: undefined, column: {}, value: {}, row: {} },
    onnotice: ignore,
    onnotify(channel: string) {
      for (const listener of listeners) listener(channel)
    },
    onclose() {
      finish(new Error('the connection ended'))
    },
  } as never)

  async function run(statement: Statement): Promise<RowSet> {
    // It would open another connection by itself, in which nothing is as the caller left it.
    if (over) throw new Error('the connection ended')
    return runPostgresJs(sql, statement)
  }

  async function close(): Promise<void> {
    finish(undefined)
    await sql.end({ timeout: 0 })
  }

  try {
    await run({ text: 'select 1', values: [] })
  } catch (error) {
    await close()
    throw error
  }
  return {
    ended,
    run,
    onNotification(listener) {
      listeners.add(listener)
    },
    close,
  }
}

function ignore(): void {}
