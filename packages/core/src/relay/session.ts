import { OutboxError } from '../contract/errors.ts'
import type { RowSet, SqlConnector, SqlConnection, Statement } from '../contract/sql-client.ts'
import { sqlFault } from '../contract/sql-state.ts'
import { within } from './pace.ts'

/** A session for one of the relay's jobs: opened when it is needed, thrown away after any fault of the connection. */
export interface Session {
  run(statement: Statement): Promise<RowSet>
  /** Rises with every new connection. Two equal readings around a statement mean that it ran on that connection. */
  readonly generation: number
  /** Drops the connection at once; the next statement opens a new one. */
  drop(): Promise<void>
}

export interface SessionOptions {
  /** A statement that takes longer is given up with its connection, in ms. */
  readonly timeoutMs: number
  readonly onConnect?: (connection: SqlConnection) => Promise<void>
}

const late = Symbol('late')

export function createSession(client: SqlConnector, options: SessionOptions): Session {
  let current: SqlConnection | undefined
  let named = true
  let generation = 0

  async function drop(): Promise<void> {
    const dropped = current
    current = undefined
    await dropped?.close()
  }

  async function connected(): Promise<SqlConnection> {
    if (current !== undefined) return current
    const opening = client.connect()
    const opened = await within(opening, options.timeoutMs, late)
    if (opened === late) {
      void opening.then((connection) => connection.close()).catch(() => undefined)
      throw new OutboxError('DATABASE_UNREACHABLE', `No connection to the database within ${String(options.timeoutMs)} ms.`)
    }
    current = opened
    generation += 1
    void opened.ended.then(() => {
      if (current === opened) current = undefined
    })
    await options.onConnect?.(opened)
    return opened
  }

  async function attempt(statement: Statement): Promise<RowSet> {
    const connection = await connected()
    const { name, text, values } = statement
    const sent = connection.run(named && name !== undefined ? { name, text, values } : { text, values })
    const answer = await within(sent, options.timeoutMs, late)
    if (answer === late) {
      sent.catch(() => undefined)
      throw new OutboxError('DATABASE_UNREACHABLE', `The database did not answer within ${String(options.timeoutMs)} ms.`)
    }
    return answer
  }

  return {
    get generation() {
      return generation
    },
    drop,
    async run(statement) {
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
    },
  }
}
