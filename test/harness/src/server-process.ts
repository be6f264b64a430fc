import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { descendantsOf, isAlive, send } from './process-tree.mjs'
import type { ServerUser } from './server-folder.ts'
import { until } from './until.ts'
import { guardProcess, releaseProcess } from './watchdog.ts'

const STOP_GRACE_MS = 15_000
const LOG_LINES = 40

export interface Command {
  readonly program: string
  readonly args: readonly string[]
  readonly user?: ServerUser | undefined
  /** Variables for it, beside the few that every server gets. */
  readonly env?: Readonly<Record<string, string>>
}

export interface ServerProcess {
  readonly pid: number
  /** How it ended, in words; undefined while it runs. */
  ended(): string | undefined
  /** Resolves when the process has ended, with how. */
  readonly exit: Promise<string>
  pause(): void
  resume(): void
  kill(): Promise<void>
  stop(signal: NodeJS.Signals): Promise<void>
  /** Lets this process finish although the server still runs; the watchdog then ends the server. */
  unref(): void
}

/** Starts a server in its own process group, output appended to `logFile`, ended at the latest with this process. */
export function spawnServer(command: Command, logFile: string, guardSignal: NodeJS.Signals): ServerProcess {
  // A file, not a pipe: a pipe that nobody reads would block the server, and one that closes would end it.
  const log = openSync(logFile, 'a')
  const child = spawn(command.program, command.args, {
    detached: true,
    // Nothing of the caller's environment: PGPORT, PGDATA and their like must not reach a private server.
    env: { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC', ...command.env },
    stdio: ['ignore', log, log],
    ...command.user,
  })
  closeSync(log)
  const { pid } = child
  const exit = exitOf(child, command.program)
  if (pid === undefined) return neverStarted(exit)
  guardProcess(pid, guardSignal)
  let ended: string | undefined
  void exit.then((how) => {
    ended = how
    releaseProcess(pid)
  })

  const server: ServerProcess = {
    pid,
    exit,
    ended: () => ended,
    pause() {
      if (ended === undefined) freeze(pid)
    },
    resume() {
      if (ended !== undefined) return
      for (const member of [...descendantsOf(pid), pid]) send(member, 'SIGCONT')
    },
    async kill() {
      if (ended !== undefined) return
      child.ref()
      // Frozen first: a server that may still fork would give birth to a child that the list does not have.
      const tree = freeze(pid)
      for (const member of tree) send(member, 'SIGKILL')
      await exit
      await until(() => mustBeGone(tree), { timeoutMs: STOP_GRACE_MS })
    },
    async stop(signal) {
      if (ended !== undefined) return
      // Nobody can pass this one on to a child, such as the server below the script that started it.
      if (signal === 'SIGKILL') return server.kill()
      child.ref()
      server.resume()
      send(pid, signal)
      const impatience = setTimeout(() => void server.kill(), STOP_GRACE_MS)
      await exit
      clearTimeout(impatience)
    },
    unref() {
      child.unref()
    },
  }
  return server
}

function exitOf(child: ChildProcess, program: string): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => {
      resolve(`could not run ${program}: ${error.message}`)
    })
    child.once('exit', (code, signal) => {
      resolve(signal === null ? `exit code ${String(code)}` : `ended by ${signal}`)
    })
  })
}

function neverStarted(exit: Promise<string>): ServerProcess {
  const nothing = async (): Promise<void> => {
    await exit
  }
  const ended = (): string => 'could not be run'
  return { pid: -1, exit, ended, pause: ended, resume: ended, kill: nothing, stop: nothing, unref: ended }
}

/** Stops the root first, then its descendants until no new one appears. Returns the whole tree. */
function freeze(pid: number): number[] {
  const stopped = new Set<number>()
  for (let fresh = [pid]; fresh.length > 0; fresh = descendantsOf(pid).filter((member) => !stopped.has(member))) {
    for (const member of fresh) {
      send(member, 'SIGSTOP')
      stopped.add(member)
    }
  }
  return [...stopped]
}

function mustBeGone(tree: readonly number[]): void {
  const left = tree.filter(isAlive)
  if (left.length > 0) throw new Error(`Processes ${left.join(', ')} are still there after SIGKILL.`)
}

export function lastLines(logFile: string): string {
  try {
    return readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-LOG_LINES).join('\n')
  } catch {
    // Stopped: the folder with the log is gone.
    return ''
  }
}
