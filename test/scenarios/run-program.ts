import { type ChildProcess, spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))

export interface ProgramEnd {
  /** The exit code, or the signal that ended it. */
  readonly how: number | string
  readonly stdout: string
  readonly stderr: string
}

export interface Program {
  readonly process: ChildProcess
  /** Resolves with what it wrote when it has ended. */
  readonly end: Promise<ProgramEnd>
}

/** Starts a TypeScript program of this repository as the scripts in package.json do. */
export function startProgram(path: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Program {
  const child = spawn(process.execPath, ['--conditions=@inorder/source', '--import', 'tsx', path, ...args], {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exit = new Promise<number | string>((resolve) => {
    child.once('close', (code, signal) => resolve(signal ?? code ?? 'unknown'))
  })
  const end = Promise.all([exit, text(child.stdout), text(child.stderr)])
  return { process: child, end: end.then(([how, stdout, stderr]) => ({ how, stdout, stderr })) }
}

/** The last line of standard output, which `--json` promises to be one JSON object. */
export function lastJson({ stdout }: ProgramEnd): Record<string, unknown> {
  return JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as Record<string, unknown>
}
