import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { firstAnswer } from './first-answer.ts'
import { freePort } from './free-port.ts'
import { javaClassPath, type JavaLibrary, javaProgram } from './java-library.ts'
import { type OwnServer, startServer } from './own-server.ts'

const LIBRARY: JavaLibrary = {
  name: 'kafka-4.1.0',
  artifacts: ['org.apache.kafka:kafka_2.13:4.1.0', 'org.apache.logging.log4j:log4j-slf4j-impl:2.24.3'],
}
const ANSWER_TIMEOUT_MS = 1_000

export interface KafkaOptions {
  /** More settings, as in server.properties. */
  settings?: Record<string, string>
  /** The port that clients are told to use: that of a proxy in front. Default: the server's own. */
  advertisedPort?: number
}

export interface KafkaServer extends OwnServer {
  /** Host and port, as clients take them. */
  readonly broker: string
}

/** Starts a private Kafka, one node that is broker and controller. It never outlives the current process. */
export async function startKafka(options: KafkaOptions = {}): Promise<KafkaServer> {
  const [server] = await startKafkaCluster(1, options)
  if (server === undefined) throw new Error('a cluster of one node has no node')
  return server
}

/** Starts a private cluster of so many nodes, each of which can be frozen and killed alone. */
export async function startKafkaCluster(nodes: number, options: KafkaOptions = {}): Promise<KafkaServer[]> {
  const [program, classPath, clusterId] = [javaProgram(), await javaClassPath(LIBRARY), newClusterId()]
  const voters: number[] = []
  for (let node = 0; node < nodes; node++) voters.push(await freePort())
  const replicas = String(nodes)
  const settings = {
    'default.replication.factor': replicas,
    'offsets.topic.replication.factor': replicas,
    'transaction.state.log.replication.factor': replicas,
    ...options.settings,
  }
  return Promise.all(
    voters.map(async (controller, index) => {
      const member = { id: index + 1, controller, voters }
      const server = await startServer({
        name: 'kafka',
        cleanStop: 'SIGTERM',
        quickStop: 'SIGKILL',
        prepare: (folder) => format(program, classPath, folder, { ...member, clusterId }),
        command(folder, port) {
          writeFileSync(propertiesIn(folder), propertiesOf(folder, port, member, { ...options, settings }))
          return { program, args: serverArguments(classPath, folder) }
        },
        answers: (_, port) => mustAnswer(port),
      })
      return Object.assign(server, { broker: `127.0.0.1:${server.port}` })
    }),
  )
}

interface Member {
  readonly id: number
  readonly controller: number
  /** The controller ports of all nodes, in the order of their ids. */
  readonly voters: readonly number[]
}

async function format(
  program: string,
  classPath: string,
  folder: string,
  member: Member & { readonly clusterId: string },
): Promise<void> {
  // The port of the broker is not known yet and does not go into what is written.
  writeFileSync(propertiesIn(folder), propertiesOf(folder, 9092, member, {}))
  writeFileSync(loggingIn(folder), logging)
  const tool = ['-Xmx128m', '-cp', classPath, 'kafka.tools.StorageTool', 'format']
  await promisify(execFile)(program, [...tool, '-t', member.clusterId, '-c', propertiesIn(folder)])
}

function newClusterId(): string {
  return randomBytes(16).toString('base64url')
}

function serverArguments(classPath: string, folder: string): string[] {
  return [
    '-Xms128m',
    '-Xmx256m',
    '-XX:+UseSerialGC',
    '-XX:TieredStopAtLevel=1',
    `-Dlog4j2.configurationFile=${loggingIn(folder)}`,
    '-cp',
    classPath,
    'kafka.Kafka',
    propertiesIn(folder),
  ]
}

function propertiesOf(
  folder: string,
  port: number,
  { id, controller, voters }: Member,
  { settings, advertisedPort = port }: KafkaOptions,
): string {
  const all: Record<string, string> = {
    'process.roles': 'broker,controller',
    'node.id': String(id),
    'controller.quorum.voters': voters.map((voter, index) => `${index + 1}@127.0.0.1:${voter}`).join(','),
    listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controller}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${advertisedPort}`,
    'controller.listener.names': 'CONTROLLER',
    'inter.broker.listener.name': 'PLAINTEXT',
    'listener.security.protocol.map': 'CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT',
    'log.dirs': join(folder, 'log'),
    'offsets.topic.replication.factor': '1',
    'offsets.topic.num.partitions': '1',
    'transaction.state.log.replication.factor': '1',
    'transaction.state.log.min.isr': '1',
    'share.coordinator.state.topic.replication.factor': '1',
    'share.coordinator.state.topic.min.isr': '1',
    'group.initial.rebalance.delay.ms': '0',
    'auto.create.topics.enable': 'false',
    'num.network.threads': '2',
    'num.io.threads': '2',
    ...settings,
  }
  return Object.entries(all)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')
}

const logging = `<Configuration status="warn"><Appenders><Console name="out"><PatternLayout pattern="%d %p %c %m%n"/></Console></Appenders>
<Loggers><Root level="warn"><AppenderRef ref="out"/></Root></Loggers></Configuration>
`

function propertiesIn(folder: string): string {
  return join(folder, 'server.properties')
}

function loggingIn(folder: string): string {
  return join(folder, 'log4j2.xml')
}

/** ApiVersions version 0, what every client asks first: length, request 18, version 0, correlation id, no client id. */
const apiVersionsRequest = Buffer.from([0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff])

/** A port that somebody else took would make this server end, which `startServer` notices. */
async function mustAnswer(port: number): Promise<void> {
  await firstAnswer(port, apiVersionsRequest, ANSWER_TIMEOUT_MS)
}
