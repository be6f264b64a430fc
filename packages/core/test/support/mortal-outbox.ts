import type pg from 'pg'
import { fromPg, type PgClient, type PgPool } from '../../src/clients/from-pg.ts'
import type { SqlConnection } from '../../src/contract/sql-client.ts'
import { createOutbox, type Outbox } from '../../src/outbox.ts'

/** An outbox whose relays can die: their connections break, no new one opens, and nobody says goodbye. */
export interface MortalOutbox {
  readonly outbox: Outbox<PgClient, PgPool | PgClient>
  readonly die: () => Promise<void>
}

export function mortalOutbox(pool: pg.Pool): MortalOutbox {
  const open = new Set<SqlConnection>()
  let dead = false
  const client = fromPg(pool)
  const outbox = createOutbox({
    client: {
      ...client,
      async connect() {
        if (dead) throw new Error('dead')
        const connection = await client.connect()
        open.add(connection)
        return connection
      },
    },
  })
  return {
    outbox,
    async die() {
      dead = true
      await Promise.all([...open].map((connection) => connection.close()))
    },
  }
}
