import { createOutbox, fromPg, type Outbox, type PgClient, type PgPool, type SqlClient } from '@inorder/core'
import pg from 'pg'

export interface CountingOutbox {
  readonly outbox: Outbox<PgClient, PgPool | PgClient>
  /** Statements that the outbox's own sessions have run. */
  readonly statements: number
  close(): Promise<void>
}

/** An outbox that counts what its sessions send, which is all that a relay sends. */
export function countingClient(url: string): CountingOutbox {
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  pool.on('error', () => undefined)
  const inner = fromPg(pool)
  let statements = 0
  const client: SqlClient<PgClient, PgPool | PgClient> = {
    ...inner,
    async connect() {
      const connection = await inner.connect()
      return {
        ...connection,
        run(statement) {
          statements += 1
          return connection.run(statement)
        },
      }
    },
  }
  const outbox = createOutbox({ client })
  return {
    outbox,
    get statements() {
      return statements
    },
    async close() {
      await outbox.close()
      await pool.end()
    },
  }
}
