import type { SqlConnection, SqlConnector, Statement } from '../../src/contract/sql-client.ts'
import { purposeOf } from './around-statements.ts'

/** What a relay uses a session for. */
export type Use = 'find' | 'settle' | 'ownership' | 'load'

const useOf: Readonly<Record<string, Use>> = {
  find: 'find',
  sweep: 'find',
  due: 'find',
  listen: 'find',
  acknowledge: 'settle',
  settle: 'settle',
  heartbeat: 'ownership',
  load: 'load',
}

/** The sessions that a client opened, told apart by what runs on them. */
export interface WatchedSessions {
  /** Server process ids of the sessions that live. */
  backends(): number[]
  backend(use: Use): number | undefined
  /** How many statements of this purpose were sent. */
  sent(purpose: string): number
  /** The most statements of this purpose that were on their way at once since `forget`. */
  atOnce(purpose: string): number
  forget(): void
  /** How many tries to connect failed. */
  readonly refused: number
}

export function watchSessions<C extends SqlConnector>(client: C): C & { readonly watched: WatchedSessions } {
  const live = new Map<SqlConnection, { pid: number; use?: Use }>()
  const sent = new Map<string, number>()
  const running = new Map<string, number>()
  const most = new Map<string, number>()
  let refused = 0

  function begin(purpose: string): void {
    sent.set(purpose, (sent.get(purpose) ?? 0) + 1)
    const now = (running.get(purpose) ?? 0) + 1
    running.set(purpose, now)
    most.set(purpose, Math.max(now, most.get(purpose) ?? 0))
  }

  const watched: WatchedSessions = {
    backends: () => [...live.values()].map(({ pid }) => pid),
    backend: (use) => [...live.values()].find((session) => session.use === use)?.pid,
    sent: (purpose) => sent.get(purpose) ?? 0,
    atOnce: (purpose) => most.get(purpose) ?? 0,
    forget() {
      most.clear()
    },
    get refused() {
      return refused
    },
  }
  return {
    ...client,
    watched,
    async connect() {
      const connection = await client.connect().catch((error: unknown) => {
        refused += 1
        throw error
      })
      const { rows } = await connection.run({ text: 'select pg_backend_pid()', values: [] })
      const session: { pid: number; use?: Use } = { pid: Number(rows[0]?.[0]) }
      live.set(connection, session)
      void connection.ended.then(() => live.delete(connection))
      return {
        ...connection,
        async run(statement: Statement) {
          const purpose = purposeOf(statement)
          const use = useOf[purpose]
          if (use !== undefined) session.use = use
          begin(purpose)
          try {
            return await connection.run(statement)
          } finally {
            running.set(purpose, (running.get(purpose) ?? 1) - 1)
          }
        },
      }
    },
  }
}
