import { OutboxError } from '../contract/errors.ts'
import type { RowSet, SqlConnector, SqlConnection, Statement } from '../contract/sql-client.ts'
import { sqlFault } from '../contract/sql-state.ts'
import { late, within } from './pace.ts'
import { requireWritable } from './require-writable.ts'

/**
 * A session for one of the relay's uses: opened when it is needed, thrown away after any fault of the connection. Its
 * statements run one after another, in the order in which they were asked for.
 */
export interface Session {
  run(statement: Statement): Promise<RowSet>
  /** Rises with every new connection. Two equal readings around a statement mean that it ran on that connection. */
  readonly generation: number
  /** Drops the connection at once; the next statement opens a new one. */
  drop(): Promise<void>
  /** Drops the connection for good: no later statement runs, and none opens a new one. */
  close(): Promise<void>
}

export interface SessionOptions {
  /** A statement that takes longer is given up with its connection, in ms. */
  readonly timeoutMs: number
  readonly onConnect?: (connection: SqlConnection) => Promise<void>
}

export function createSession(client: SqlConnector, options: SessionOptions): Session {
  let current: SqlConnection | undefined
  let named = true
  let generation = 0
  let closed = false
  let last: Promise<unknown> = Promise.resolve()

  async function drop(): Promise<void> {
    const dropped = current
    current = undefined
    await dropped?.close()
  }

  function notInTime(): OutboxError {
    return new OutboxError(
      'DATABASE_UNREACHABLE',
      `The database did not answer within ${String(options.timeoutMs)} ms.`,
    )
  }

  function isClosed(): boolean {
    return closed
  }

  async function connected(): Promise<SqlConnection> {
    if (isClosed()) throw new OutboxError('RELAY_STATE', 'This session is closed.')
    if (current !== undefined) return current
    const opening = client.connect()
    const opened = await within(opening, options.timeoutMs)
    if (opened === late) {
      void opening.then((connection) => connection.close()).catch(() => undefined)
      throw new OutboxError(
        'DATABASE_UNREACHABLE',
        `No connection to the database within ${String(options.timeoutMs)} ms.`,
      )
    }
    if (isClosed()) {
      await opened.close()
      throw new OutboxError('RELAY_STATE', 'This session is closed.')
    }
    current = opened
    generation += 1
    void opened.ended.then(() => {
      if (current === opened) current = undefined
      // A pool counts a connection that broke as taken until it is given back.
      return opened.close()
    })
    if ((await within(prepare(opened), options.timeoutMs)) === late) throw notInTime()
    return opened
  }

  async function prepare(opened: SqlConnection): Promise<void> {
    await requireWritable(opened)
    await options.onConnect?.(opened)
  }

  async function attempt(statement: Statement): Promise<RowSet> {
    const connection = await connected()
    const { name, text, values } = statement
    const sent = connection.run(named && name !== undefined ? { name, text, values } : { text, values })
    const answer = await within(sent, options.timeoutMs)
    if (answer === late) {
      sent.catch(() => undefined)
      throw notInTime()
    }
    return answer
  }

  async function runNow(statement: Statement): Promise<RowSet> {
    try {
      return await attempt(statement)
    } catch (error) {
      const fault = sqlFault(error)
      if (fault === 'unprepared') {
        // A pooler gave us a server session that does not know our prepared statement: go on without them.
        named = false
        return await attempt(statement)
      }
      if (fault === 'connection') await drop()
      throw error
    }
  }

  return {
    get generation() {
      return generation
    },
    drop,
    async close() {
      closed = true
      await drop()
    },
    run(statement) {
      const answer = last.then(() => runNow(statement))
      last = answer.catch(() => undefined)
      return answer
    },
  }
}
