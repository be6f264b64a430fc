import type { SqlConnection, SqlConnector, SqlSession } from '../../src/contract/sql-client.ts'

/**
 * Sessions that are lent and given back: to open one takes longer than most scripts. What is lent looks like a new
 * session; what it leaves behind are prepared statements, which a second user prepares under the same names.
 */
export interface Stash extends SqlConnector {
  connect(): Promise<Lent>
  close(): Promise<void>
}

export interface Lent extends SqlConnection {
  /** The session breaks: whoever has it is told so. */
  sever(): void
}

export function createStash(open: () => Promise<SqlConnection>): Stash {
  const free: SqlConnection[] = []
  const all: SqlConnection[] = []

  async function take(): Promise<SqlConnection> {
    const kept = free.pop()
    if (kept !== undefined) return kept
    const opened = await open()
    all.push(opened)
    return opened
  }

  return {
    async connect() {
      const session = await take()
      let finish: (reason: Error | undefined) => void = () => undefined
      const ended = new Promise<Error | undefined>((resolve) => (finish = resolve))
      let last: Promise<unknown> = Promise.resolve()
      let over: Error | undefined

      function end(reason: Error | undefined): void {
        if (over !== undefined) return
        over = reason ?? new Error('this session is closed')
        finish(reason)
        void last.then(() => free.push(session))
      }

      const run: SqlSession['run'] = (statement) => {
        if (over !== undefined) return Promise.reject(over)
        const answer = session.run(statement)
        last = answer.catch(() => undefined)
        return answer
      }
      return {
        ended,
        run,
        close: async () => end(undefined),
        sever: () => end(new Error('the connection broke')),
      }
    },
    async close() {
      await Promise.all(all.map((session) => session.close()))
    },
  }
}
