import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { firstAnswer } from './first-answer.ts'
import { freePort } from './free-port.ts'
import { type OwnServer, startServer } from './own-server.ts'
import { programOnPath } from './program-on-path.ts'
import { createServerFolder, type ServerUser, unprivilegedUser } from './server-folder.ts'
import { spawnServer } from './server-process.ts'

const ANSWER_TIMEOUT_MS = 2_000
/** Where Debian keeps the programs that do not change the user. */
const debianFolder = '/usr/lib/rabbitmq/lib'

export interface RabbitMqOptions {
  /** More settings, as in rabbitmq.conf. */
  settings?: Record<string, string>
  plugins?: readonly string[]
}

export interface RabbitMqServer extends OwnServer {
  /** The URL of the default virtual host, as guest. */
  readonly url: string
  /** Runs `rabbitmqctl` against it and returns what it prints. */
  ctl(...args: string[]): Promise<string>
}

/**
 * Starts a private RabbitMQ with a port mapper of its own, so that nodes of other people are never met. Neither outlives
 * the current process.
 */
export async function startRabbitMq(options: RabbitMqOptions = {}): Promise<RabbitMqServer> {
  const [folderOfPrograms, user] = [programsFolder(), unprivilegedUser()]
  const mapper = await startPortMapper(user)
  const name = `inorder-${randomBytes(4).toString('hex')}@localhost`
  const [distribution, cookie] = [await freePort(), randomBytes(12).toString('hex')]
  const envIn = (folder: string, port: number): Record<string, string> => ({
    HOME: folder,
    ERL_EPMD_PORT: String(mapper.port),
    // Erlang starts a port mapper on every address where nobody listens, and that one stays for ever.
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_NODENAME: name,
    RABBITMQ_NODE_PORT: String(port),
    RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
    RABBITMQ_DIST_PORT: String(distribution),
    RABBITMQ_MNESIA_BASE: join(folder, 'mnesia'),
    RABBITMQ_LOG_BASE: join(folder, 'log'),
    RABBITMQ_LOGS: '-',
    RABBITMQ_CONF_ENV_FILE: '/dev/null',
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'enabled_plugins'),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: `-setcookie ${cookie}`,
    RABBITMQ_CTL_ERL_ARGS: `-setcookie ${cookie}`,
  })
  const ctl = async (folder: string, port: number, args: readonly string[]): Promise<string> => {
    const environment = { PATH: process.env.PATH, LC_ALL: 'C', ...envIn(folder, port) }
    const command = ['-q', '-n', name, ...args]
    return (await promisify(execFile)(join(folderOfPrograms, 'rabbitmqctl'), command, { env: environment, ...user }))
      .stdout
  }
  try {
    const server = await startServer({
      name: 'rabbitmq',
      user,
      cleanStop: 'SIGTERM',
      quickStop: 'SIGKILL',
      async prepare(folder) {
        writeConfiguration(folder, options, user)
      },
      command: (folder, port) => ({
        program: join(folderOfPrograms, 'rabbitmq-server'),
        args: [],
        user,
        env: envIn(folder, port),
      }),
      answers: (_, port) => mustGreet(port),
    })
    const stopServer = server.stop.bind(server)
    const stop = async (): Promise<void> => {
      await stopServer()
      await mapper.stop()
    }
    return Object.defineProperties(server, {
      url: { value: `amqp://guest:guest@127.0.0.1:${server.port}` },
      ctl: { value: (...args: string[]) => ctl(server.folder, server.port, args) },
      stop: { value: stop },
      [Symbol.asyncDispose]: { value: stop },
    }) as RabbitMqServer
  } catch (error) {
    await mapper.stop()
    throw error
  }
}

/** The programs below Debian's folder, or where a server of another origin has them. */
function programsFolder(): string {
  const versions = existsSync(debianFolder) ? readdirSync(debianFolder) : []
  const [version] = versions.filter((entry) => existsSync(join(debianFolder, entry, 'sbin', 'rabbitmq-server')))
  if (version !== undefined) return join(debianFolder, version, 'sbin')
  const program = programOnPath('rabbitmq-server')
  if (program === undefined)
    throw new Error('rabbitmq-server is not on PATH. Install it (apt-get install rabbitmq-server) and run again.')
  return join(program, '..')
}

/** Erlang starts one by itself, which outlives everybody. One that is there already is used instead. */
async function startPortMapper(user: ServerUser | undefined): Promise<{ port: number; stop(): Promise<void> }> {
  const program = programOnPath('epmd')
  if (program === undefined) throw new Error('epmd is not on PATH. It comes with Erlang, which RabbitMQ needs.')
  const port = await freePort()
  const folder = createServerFolder('epmd', user)
  const args = ['-address', '127.0.0.1', '-port', String(port)]
  const mapper = spawnServer({ program, args, user }, join(folder.path, 'epmd.log'), 'SIGKILL')
  mapper.unref()
  return {
    port,
    async stop() {
      await mapper.stop('SIGKILL')
      folder.remove()
    },
  }
}

function writeConfiguration(folder: string, { settings = {}, plugins = [] }: RabbitMqOptions, user?: ServerUser): void {
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`)
  writeFileSync(join(folder, 'rabbitmq.conf'), lines.join(''))
  writeFileSync(join(folder, 'enabled_plugins'), `[${plugins.join(',')}].\n`)
  for (const made of ['mnesia', 'log']) mkdirSync(join(folder, made))
  if (user === undefined) return
  for (const made of ['mnesia', 'log', 'rabbitmq.conf', 'enabled_plugins'])
    chownSync(join(folder, made), user.uid, user.gid)
}

/** A server that is up answers the greeting of AMQP 0-9-1 with its own properties, the first bytes of a method frame. */
async function mustGreet(port: number): Promise<void> {
  const answer = await firstAnswer(port, Buffer.from('AMQP\0\0\u0009\u0001', 'latin1'), ANSWER_TIMEOUT_MS)
  if (answer[0] !== 1) throw new Error('Not the greeting of AMQP.')
}
