import { OutboxError } from '../contract/errors.ts'
import { explainSchema } from '../contract/schema-fault.ts'
import type { SqlConnector, SqlSession, Statement } from '../contract/sql-client.ts'
import { sqlFault } from '../contract/sql-state.ts'
import type { Names } from '../storage/names.ts'

/** What every verb needs of its outbox. */
export interface OperatorParts {
  readonly client: SqlConnector
  readonly names: Names
  readonly actor: string
  /** Wakes the relays: something was put in line. */
  readonly wake: () => void
  /** Resolves after so many ms, or as soon as the signal aborts. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<boolean>
}

/** Runs single statements, each again when it met a conflict or a lock on its way. */
export interface OperatorSession extends SqlSession {
  /**
   * Runs `work` between BEGIN and COMMIT; nothing in it is tried again. READ COMMITTED whatever the default is, so that
   * each statement sees what was committed before it.
   */
  transaction<T>(work: (tx: SqlSession) => Promise<T>): Promise<T>
}

/** How often a statement is tried, and how long is waited in between, in ms. */
const tries = 20
const retryMs = 25

/**
 * Gives `work` a connection of its own and closes it afterwards: an operator is at work for seconds, and keeps nothing
 * for the hours in between. Statements are not prepared, so a transaction pooler will do.
 */
export async function withSession<T>(
  { client, names, pause }: OperatorParts,
  work: (session: OperatorSession) => Promise<T>,
): Promise<T> {
  const fail = (cause: unknown): never => explain(cause, names)
  const never = new AbortController().signal
  const connection = await client.connect().catch(fail)
  const once: SqlSession = { run: (statement) => connection.run(statement).catch(fail) }

  async function run(statement: Statement): ReturnType<SqlSession['run']> {
    for (let failures = 1; ; failures++) {
      try {
        return await connection.run(statement)
      } catch (error) {
        const fault = sqlFault(error)
        if (failures >= tries || (fault !== 'conflict' && fault !== 'locked')) return fail(error)
        await pause(retryMs, never)
      }
    }
  }

  async function transaction<R>(inside: (tx: SqlSession) => Promise<R>): Promise<R> {
    await once.run({ text: 'begin isolation level read committed', values: [] })
    try {
      const result = await inside(once)
      await once.run({ text: 'commit', values: [] })
      return result
    } catch (error) {
      await once.run({ text: 'rollback', values: [] }).catch(() => undefined)
      throw error
    }
  }

  try {
    return await work({ run, transaction })
  } finally {
    await connection.close()
  }
}

/** Errors of the database reach the caller as they are, except those that have a remedy of ours. */
function explain(cause: unknown, { schema }: Names): never {
  if (sqlFault(cause) !== 'connection') explainSchema(cause, 'Nothing more was changed', schema)
  throw new OutboxError(
    'DATABASE_UNREACHABLE',
    `The database could not be reached: ${cause instanceof Error ? cause.message : String(cause)}. What had been committed before is in the audit; call again with the same filter to go on.`,
    { cause },
  )
}
