import type pg from 'pg'
import { type OutboxDatabase, outboxDatabase } from '../support/outbox-database.ts'
import { type PlanSession, planSession } from './explain.ts'
import { empty, hotStatements, type Situation, statementsFor } from './statements.ts'

/** An outbox whose statistics only the test refreshes, and sessions that hold plans from different times. */
export interface PlanDatabase extends AsyncDisposable {
  readonly outbox: OutboxDatabase
  /** A session on which every hot statement has been planned, with the table as it is now. */
  session(): Promise<PlanSession>
  /** Another person's session; what it leaves open ends with the database. */
  other(): Promise<pg.PoolClient>
  analyze(): Promise<void>
}

export async function planDatabase(url?: string): Promise<PlanDatabase> {
  const outbox = await outboxDatabase(url)
  const clients: pg.PoolClient[] = []
  await outbox.pool.query('alter table outbox.events set (autovacuum_enabled = off)')
  const other = async (): Promise<pg.PoolClient> => {
    const client = await outbox.connect()
    clients.push(client)
    return client
  }
  return {
    outbox,
    other,
    async session() {
      const session = await planSession(await other())
      const statements = statementsFor(empty)
      for (const name of hotStatements) await session.prepare(name, statements[name])
      return session
    },
    async analyze() {
      await outbox.pool.query('analyze outbox.events')
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.release(true)
      await outbox[Symbol.asyncDispose]()
    },
  }
}

type Sql = Pick<pg.Pool, 'query'> | Pick<pg.PoolClient, 'query'>

/** Inserts rows of which SQL gives the key and, where it matters, other columns; `n` counts them from 1. */
export async function fill(
  sql: Sql,
  rows: number,
  key: string,
  columns: Readonly<Record<string, string>> = {},
): Promise<void> {
  const names = Object.keys(columns).map((name) => `, ${name}`)
  const values = Object.values(columns).map((value) => `, ${value}`)
  await (sql as pg.Pool).query(
    `insert into outbox.events (topic, key, payload${names.join('')})
     select 'orders', ${key}, '{}'${values.join('')} from generate_series(1, ${rows}) n`,
  )
}

/** A hundred events that became visible after `previous`, each the head of a key of its own. */
export async function addHeads({ outbox }: PlanDatabase): Promise<Pick<Situation, 'previous' | 'heads'>> {
  const previous = await outbox.snapshot()
  await fill(outbox.pool, 100, "'head-' || n")
  const { rows } = await outbox.pool.query<{ id: string; eventId: string; lane: string }>(
    `select id, event_id "eventId", lane from outbox.events where key like 'head-%' order by id desc limit 100`,
  )
  return { previous, heads: rows }
}
