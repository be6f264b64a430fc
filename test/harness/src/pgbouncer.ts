import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type OwnServer, startServer } from './own-server.ts'
import { withClient } from './postgres.ts'
import { programOnPath } from './program-on-path.ts'
import { unprivilegedUser } from './server-folder.ts'

const SUPERUSER = 'postgres'

export interface PgBouncerOptions {
  /** The port of the PostgreSQL behind it, on this machine. */
  port: number
  /** More settings, as in the section [pgbouncer] of its file. */
  settings?: Record<string, string>
}

export interface PgBouncerServer extends OwnServer {
  /** The URL of a database of the PostgreSQL behind it. */
  url(database: string): string
}

/** Starts a private PgBouncer in transaction mode. It never outlives the current process. */
export async function startPgBouncer(options: PgBouncerOptions): Promise<PgBouncerServer> {
  const program = programOnPath('pgbouncer')
  if (program === undefined) {
    throw new Error('pgbouncer is not on PATH. Install it (apt-get install pgbouncer) and run again.')
  }
  const user = unprivilegedUser()
  const server = await startServer({
    name: 'pgbouncer',
    user,
    // SIGINT would wait for the clients to go.
    cleanStop: 'SIGTERM',
    quickStop: 'SIGTERM',
    command(folder, port) {
      writeFileSync(fileIn(folder), configuration(options, port))
      return { program, args: [fileIn(folder)], user }
    },
    async answers(folder, port) {
      await withClient(urlOf(port, 'pgbouncer'), async (client) => {
        const { rows } = await client.query<{ key: string; value: string }>('SHOW CONFIG')
        if (!rows.some(({ key, value }) => key === 'conffile' && value === fileIn(folder)))
          throw new Error(`Another PgBouncer answers on port ${port}.`)
      })
    },
  })
  return Object.assign(server, { url: (database: string) => urlOf(server.port, database) })
}

function configuration(options: PgBouncerOptions, port: number): string {
  const all: Record<string, string> = {
    listen_addr: '127.0.0.1',
    listen_port: String(port),
    unix_socket_dir: '',
    // Whatever name a client gives, it is the one user of the line below.
    auth_type: 'any',
    admin_users: SUPERUSER,
    pool_mode: 'transaction',
    max_client_conn: '500',
    default_pool_size: '50',
    // By default it waits 15 s before it tries a server again that was not there.
    server_login_retry: '1',
    log_connections: '0',
    log_disconnections: '0',
    ...options.settings,
  }
  const settings = Object.entries(all).map(([name, value]) => `${name} = ${value}`)
  const database = `* = host=127.0.0.1 port=${options.port} user=${SUPERUSER}`
  return ['[databases]', database, '[pgbouncer]', ...settings, ''].join('\n')
}

function fileIn(folder: string): string {
  return join(folder, 'pgbouncer.ini')
}

function urlOf(port: number, database: string): string {
  return `postgres://${SUPERUSER}@127.0.0.1:${port}/${database}`
}
