import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { type OwnServer, startServer } from './own-server.ts'
import { programOnPath } from './program-on-path.ts'

const ANSWER_TIMEOUT_MS = 1_000

export interface RedisOptions {
  /** Keeps everything acknowledged across a restart and a kill (`appendfsync always`). Default: false, kept in memory only. */
  appendOnly?: boolean
  /** The port of the primary that this server replicates. */
  replicaOf?: number
  /** More settings, as in redis.conf. */
  config?: Record<string, string>
}

export interface RedisServer extends OwnServer {
  readonly url: string
}

/** Starts a private Redis. It never outlives the current process. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const program = programOnPath('redis-server')
  if (program === undefined) {
    throw new Error('redis-server is not on PATH. Install it (apt-get install redis-server) and run again.')
  }
  const server = await startServer({
    name: 'redis',
    cleanStop: 'SIGTERM',
    quickStop: 'SIGTERM',
    command: (folder, port) => ({ program, args: settings(options, folder, port) }),
    answers: (folder, port) => mustBeOurs(folder, port, options.config?.requirepass),
  })
  return Object.assign(server, { url: `redis://127.0.0.1:${server.port}` })
}

function settings(options: RedisOptions, folder: string, port: number): string[] {
  const all: Record<string, string> = {
    port: String(port),
    bind: '127.0.0.1',
    dir: folder,
    daemonize: 'no',
    save: '',
    appendonly: options.appendOnly === true ? 'yes' : 'no',
    appendfsync: 'always',
    // By default a primary waits five seconds for more replicas before it copies itself to the first.
    'repl-diskless-sync-delay': '0',
    ...options.config,
  }
  const args = Object.entries(all).flatMap(([name, value]) => [`--${name}`, value])
  // Two arguments of one setting, so it does not fit the record.
  if (options.replicaOf !== undefined) args.push('--replicaof', '127.0.0.1', String(options.replicaOf))
  return args
}

/** Throws unless the server on this port works in our folder: another one may have taken the port first. */
async function mustBeOurs(folder: string, port: number, password: string | undefined): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.setTimeout(ANSWER_TIMEOUT_MS, () => socket.destroy(new Error(`Nothing answers on port ${port}.`)))
  const login = password === undefined ? '' : `AUTH ${password}\r\n`
  socket.write(`${login}PING\r\nCONFIG GET dir\r\nQUIT\r\n`)
  const answer = await text(socket)
  if (!answer.includes('+PONG') || !answer.includes(folder)) {
    throw new Error(`The server on port ${port} is not ready or not ours: ${answer.slice(0, 200)}`)
  }
}
