import { join } from 'node:path'
import { freePort, isFree } from './free-port.ts'
import { createServerFolder, type ServerFolder, type ServerUser } from './server-folder.ts'
import { type Command, lastLines, type ServerProcess, spawnServer } from './server-process.ts'
import { until } from './until.ts'

const START_TIMEOUT_MS = 60_000
const PORT_TRIES = 5

/** A server that belongs to this process alone: it may be frozen, killed and restarted. */
export interface OwnServer extends AsyncDisposable {
  readonly port: number
  /** The server's process; another one after a restart. */
  readonly pid: number
  /** Its private folder, removed by `stop`. */
  readonly folder: string
  /** Freezes the server and all its children: connections stay open, nothing answers. */
  pause(): void
  resume(): void
  /** SIGKILL, children included. Resolves when nothing of it runs. `restart` brings it back. */
  kill(): Promise<void>
  /** Shuts down cleanly if it still runs, then starts on the same port and folder. Resolves when it answers. */
  restart(): Promise<void>
  /** Resolves when the process is gone and the folder removed. Calling it again does nothing. */
  stop(): Promise<void>
  /** The last lines the server wrote. */
  log(): string
}

export interface ServerPlan {
  readonly name: string
  /** The unprivileged user that runs it and owns its folder, when the server refuses to run as root. */
  readonly user?: ServerUser | undefined
  /** Called once, before the first start. */
  prepare?(folder: string): Promise<void>
  command(folder: string, port: number): Command
  /** Resolves when this very server answers, and throws otherwise. */
  answers(folder: string, port: number): Promise<void>
  /** Ends it without losing what it acknowledged. */
  readonly cleanStop: NodeJS.Signals
  /** Ends it at once, for a folder that is thrown away next. */
  readonly quickStop: NodeJS.Signals
}

export async function startServer(plan: ServerPlan): Promise<OwnServer> {
  const folder = createServerFolder(plan.name, plan.user)
  try {
    await plan.prepare?.(folder.path)
    for (let attempt = 1; ; attempt++) {
      const port = await freePort()
      try {
        return ownServer(plan, folder, port, await launch(plan, folder.path, port))
      } catch (error) {
        // Someone took the port between the choice and the start: the only failure that another try can cure.
        if (attempt === PORT_TRIES || (await isFree(port))) throw error
      }
    }
  } catch (error) {
    folder.remove()
    throw error
  }
}

function ownServer(plan: ServerPlan, folder: ServerFolder, port: number, first: ServerProcess): OwnServer {
  let server = first
  let stopped: Promise<void> | undefined
  const stop = async (): Promise<void> => {
    await server.stop(plan.quickStop)
    folder.remove()
  }
  return {
    port,
    folder: folder.path,
    get pid() {
      return server.pid
    },
    pause: () => {
      server.pause()
    },
    resume: () => {
      server.resume()
    },
    kill: () => server.kill(),
    async restart() {
      if (stopped !== undefined) throw new Error(`${plan.name} was stopped and its folder removed: start a new one.`)
      await server.stop(plan.cleanStop)
      server = await launch(plan, folder.path, port)
    },
    stop: () => (stopped ??= stop()),
    log: () => lastLines(logFileIn(folder.path)),
    [Symbol.asyncDispose]: () => (stopped ??= stop()),
  }
}

async function launch(plan: ServerPlan, folder: string, port: number): Promise<ServerProcess> {
  const server = spawnServer(plan.command(folder, port), logFileIn(folder), plan.quickStop)
  try {
    await until(() => plan.answers(folder, port), { timeoutMs: START_TIMEOUT_MS, giveUp: () => endedEarly(server) })
  } catch (cause) {
    const log = lastLines(logFileIn(folder))
    await server.kill()
    throw new Error(`${plan.name} did not start on port ${port}. Its last lines:\n${log}`, { cause })
  }
  server.unref()
  return server
}

function endedEarly(server: ServerProcess): Error | undefined {
  const how = server.ended()
  return how === undefined ? undefined : new Error(`The server ended before it answered: ${how}.`)
}

function logFileIn(folder: string): string {
  return join(folder, 'server.log')
}
