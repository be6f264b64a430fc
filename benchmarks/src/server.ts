import { availableParallelism } from 'node:os'
import { createOutbox, fromPg, type Outbox, type PgClient, type PgPool } from '@inorder/core'
import { type PostgresServer, startPostgres } from '@inorder/harness'
import pg from 'pg'

/** A durable PostgreSQL of the benchmark's own, with the settings of a fresh installation. */
export interface BenchmarkServer extends AsyncDisposable {
  readonly postgres: PostgresServer
  readonly environment: Readonly<Record<string, string>>
  /** A migrated, empty outbox in a database of its own. */
  outbox(): Promise<OutboxUnderTest>
  /** The same with nobody connected: its address. */
  emptyOutbox(): Promise<string>
  /** A copy of a database that nobody is connected to: the same pages, the same statistics. */
  copy(template: string): Promise<string>
  drop(url: string): Promise<void>
}

export interface OutboxUnderTest extends AsyncDisposable {
  readonly url: string
  readonly pool: pg.Pool
  readonly outbox: Outbox<PgClient, PgPool | PgClient>
}

const shown = [
  'synchronous_commit',
  'fsync',
  'full_page_writes',
  'autovacuum',
  'jit',
  'shared_buffers',
  'max_wal_size',
  'wal_level',
  'plan_cache_mode',
]

export async function startBenchmarkServer(settings: Record<string, string> = {}): Promise<BenchmarkServer> {
  const postgres = await startPostgres({ durable: true, settings: { max_connections: '100', ...settings } })
  const admin = new pg.Client({ connectionString: postgres.url() })
  admin.on('error', () => undefined)
  await admin.connect()
  const environment = await readEnvironment(admin)
  return {
    postgres,
    environment,
    async outbox() {
      return openOutbox(await postgres.createDatabase())
    },
    async emptyOutbox() {
      await using under = await openOutbox(await postgres.createDatabase())
      return under.url
    },
    async copy(template) {
      const name = `copy_${Date.now().toString(36)}_${Math.random().toString(36).slice(2, 8)}`
      await admin.query(
        `create database ${pg.escapeIdentifier(name)} template ${pg.escapeIdentifier(databaseOf(template))}`,
      )
      // Nobody's measurement pays for the pages that the copy left behind, and full page images start equal for all.
      await admin.query('checkpoint')
      return postgres.url(name)
    },
    async drop(url) {
      await admin.query(`drop database if exists ${pg.escapeIdentifier(databaseOf(url))} with (force)`)
    },
    async [Symbol.asyncDispose]() {
      await admin.end().catch(() => undefined)
      await postgres.stop()
    },
  }
}

/** Opens the outbox of a database and brings its schema up to date. */
export async function openOutbox(url: string): Promise<OutboxUnderTest> {
  const pool = new pg.Pool({ connectionString: url, max: 40 })
  pool.on('error', () => undefined)
  const outbox = createOutbox({ client: fromPg(pool) })
  await outbox.migrate()
  return {
    url,
    pool,
    outbox,
    async [Symbol.asyncDispose]() {
      await outbox.close()
      await pool.end()
    },
  }
}

export async function openClient(url: string): Promise<pg.Client & AsyncDisposable> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() })
}

async function readEnvironment(client: pg.Client): Promise<Record<string, string>> {
  const { rows } = await client.query<{ name: string; setting: string }>(
    "select name, current_setting(name) setting from pg_settings where name = any($1) or name = 'server_version' order by name",
    [shown],
  )
  return {
    node: process.versions.node,
    cores: String(availableParallelism()),
    ...Object.fromEntries(rows.map(({ name, setting }) => [name === 'server_version' ? 'postgresql' : name, setting])),
  }
}

function databaseOf(url: string): string {
  return decodeURIComponent(new URL(url).pathname.slice(1))
}
