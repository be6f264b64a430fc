import { fileURLToPath } from 'node:url'
import { type OwnServer, startServer } from './own-server.ts'

const ANSWER_TIMEOUT_MS = 1_000

export interface FauxqsServer extends OwnServer {
  /** The endpoint that an SQS client is given. */
  readonly endpoint: string
}

/** Starts a private fauxqs, which speaks the API of SQS and keeps everything in memory. It never outlives this process. */
export async function startFauxqs(): Promise<FauxqsServer> {
  const server = await startServer({
    name: 'fauxqs',
    cleanStop: 'SIGTERM',
    quickStop: 'SIGKILL',
    command: (_, port) => ({
      program: process.execPath,
      args: [fileURLToPath(new URL('fauxqs-process.mjs', import.meta.url)), String(port)],
    }),
    async answers(_, port) {
      const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS)
      const answer = await fetch(`http://127.0.0.1:${port}/health`, { signal })
      if (!answer.ok) throw new Error(`fauxqs answered ${answer.status}.`)
    },
  })
  return Object.assign(server, { endpoint: `http://127.0.0.1:${server.port}` })
}
