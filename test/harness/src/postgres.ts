import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { type OwnServer, startServer } from './own-server.ts'
import { type PostgresBinaries, type PostgresMajor, postgresBinaries } from './postgres-binaries.ts'
import { type ServerUser, unprivilegedUser } from './server-folder.ts'

const SUPERUSER = 'postgres'

export interface PostgresOptions {
  /** The oldest and the newest supported major are installed. Default: 18. */
  major?: PostgresMajor
  /**
   * Whether commits survive a crash of the machine (`fsync`). Default: false. A killed server keeps its commits either
   * way, because what it wrote is in the kernel. A benchmark must set it.
   */
  durable?: boolean
  /** More server settings, as in postgresql.conf. */
  settings?: Record<string, string>
}

export interface PostgresServer extends OwnServer {
  readonly major: PostgresMajor
  /** The URL of a database on this server. Default: the database `postgres`. */
  url(database?: string): string
  /** Creates an empty database and returns its URL. Default name: a random one. */
  createDatabase(name?: string): Promise<string>
}

/** Starts a private PostgreSQL. It never outlives the current process. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  return startCluster(options, initdb)
}

/** Makes the files of a cluster in a folder that does not exist yet. */
export type MakeCluster = (
  cluster: string,
  parts: { readonly binaries: PostgresBinaries; readonly user: ServerUser | undefined },
) => Promise<void>

export async function startCluster(options: PostgresOptions, make: MakeCluster): Promise<PostgresServer> {
  const major = options.major ?? 18
  const user = unprivilegedUser()
  let binaries: PostgresBinaries | undefined
  const server = await startServer({
    name: 'postgres',
    user,
    // Smart shutdown waits for clients, fast does not, immediate does not even write a checkpoint.
    cleanStop: 'SIGINT',
    quickStop: 'SIGQUIT',
    async prepare(folder) {
      binaries = postgresBinaries(major, folder, user)
      await make(clusterIn(folder), { binaries, user })
    },
    command(folder, port) {
      binaries ??= postgresBinaries(major, folder, user)
      return { program: binaries.postgres, args: ['-D', clusterIn(folder), ...settings(options, port)], user }
    },
    async answers(folder, port) {
      await withClient(urlOf(port, 'postgres'), async (client) => {
        const { rows } = await client.query<{ data_directory: string }>('SHOW data_directory')
        if (rows[0]?.data_directory !== clusterIn(folder))
          throw new Error(`Another PostgreSQL answers on port ${port}.`)
      })
    },
  })
  return Object.assign(server, {
    major,
    url: (database = 'postgres') => urlOf(server.port, database),
    createDatabase: (name?: string) => createDatabase(urlOf(server.port, 'postgres'), name),
  })
}

function settings(options: PostgresOptions, port: number): string[] {
  const all: Record<string, string> = {
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    timezone: 'UTC',
    log_timezone: 'UTC',
    // Several test files share one server, each with pools of its own.
    max_connections: '200',
    // Nothing else is relaxed: synchronous_commit=off would lose acknowledged commits when a test kills the server, and
    // without full_page_writes a SIGKILL between the two halves of a page would leave it torn.
    ...(options.durable === true ? {} : { fsync: 'off' }),
    ...options.settings,
  }
  return Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

const initdb: MakeCluster = async (cluster, { binaries, user }) => {
  const args = ['-D', cluster, '-U', SUPERUSER, '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync']
  try {
    await promisify(execFile)(binaries.initdb, args, {
      env: { PATH: process.env.PATH, LC_ALL: 'C' },
      cwd: '/',
      ...user,
    })
  } catch (cause) {
    const output = cause instanceof Error && 'stderr' in cause ? String(cause.stderr) : String(cause)
    throw new Error(`initdb could not create a PostgreSQL cluster in ${cluster}:\n${output}`, { cause })
  }
}

/** Where the cluster is in the folder of its server. */
export function clusterIn(folder: string): string {
  return join(folder, 'cluster')
}

function urlOf(port: number, database: string): string {
  return `postgres://${SUPERUSER}@127.0.0.1:${port}/${database}`
}

export async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  // A server that dies under the connection emits here as well; without a listener that would end this process.
  client.on('error', () => undefined)
  try {
    await client.connect()
    return await use(client)
  } finally {
    await client.end()
  }
}

/** Creates an empty database on any server, given the URL of one of its databases, and returns the new one's URL. */
export async function createDatabase(serverUrl: string, name?: string): Promise<string> {
  const database = name ?? `inorder_${randomBytes(6).toString('hex')}`
  await withClient(serverUrl, (client) => client.query(`CREATE DATABASE ${pg.escapeIdentifier(database)}`))
  const url = new URL(serverUrl)
  url.pathname = `/${encodeURIComponent(database)}`
  return url.href
}

/** Drops every database whose name begins with `prefix`, connections or not. */
export async function dropDatabases(serverUrl: string, prefix: string): Promise<void> {
  await withClient(serverUrl, async (client) => {
    const found = await client.query<{ datname: string }>(
      'SELECT datname FROM pg_database WHERE starts_with(datname, $1)',
      [prefix],
    )
    for (const { datname } of found.rows)
      await client.query(`DROP DATABASE ${pg.escapeIdentifier(datname)} WITH (FORCE)`)
  })
}
