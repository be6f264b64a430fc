import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { javaClassPath, type JavaLibrary, javaProgram } from './java-library.ts'
import { type OwnServer, startServer } from './own-server.ts'

const LIBRARY: JavaLibrary = { name: 'elasticmq-1.7.1', artifacts: ['org.elasticmq:elasticmq-server_2.13:1.7.1'] }
const ANSWER_TIMEOUT_MS = 1_000

export interface ElasticMqServer extends OwnServer {
  /** The endpoint that an SQS client is given. */
  readonly endpoint: string
}

/** Starts a private ElasticMQ, which speaks the API of SQS, with the limits of SQS. It never outlives this process. */
export async function startElasticMq(): Promise<ElasticMqServer> {
  const [program, classPath] = [javaProgram(), await javaClassPath(LIBRARY)]
  const server = await startServer({
    name: 'elasticmq',
    cleanStop: 'SIGTERM',
    quickStop: 'SIGKILL',
    command(folder, port) {
      const file = join(folder, 'elasticmq.conf')
      writeFileSync(file, configurationOf(port))
      const memory = ['-Xms64m', '-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1']
      return { program, args: [...memory, `-Dconfig.file=${file}`, '-cp', classPath, 'org.elasticmq.server.Main'] }
    },
    async answers(_, port) {
      const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS)
      const answer = await fetch(`http://127.0.0.1:${port}/?Action=ListQueues`, { signal })
      if (!answer.ok) throw new Error(`ElasticMQ answered ${answer.status}.`)
    },
  })
  return Object.assign(server, { endpoint: `http://127.0.0.1:${server.port}` })
}

function configurationOf(port: number): string {
  return `include classpath("application.conf")
node-address { protocol = http, host = "127.0.0.1", port = ${port}, context-path = "" }
rest-sqs { enabled = true, bind-port = ${port}, bind-hostname = "127.0.0.1", sqs-limits = strict }
rest-stats.enabled = false
`
}
