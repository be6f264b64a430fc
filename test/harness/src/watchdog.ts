import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

type Instruction =
  | ['server', pid: number, stopSignal: NodeJS.Signals]
  | ['forget-server', pid: number]
  | ['folder', path: string]
  | ['forget-folder', path: string]

// Module state, against the rule, because what it guards is the process itself: one pipe per process is what tells
// the watchdog that this process is gone.
let watchdog: ChildProcess | undefined

function tell(instruction: Instruction): void {
  watchdog ??= startWatchdog()
  // A pipe write this small reaches the kernel before write() returns, so it survives a SIGKILL on the next line.
  watchdog.stdin?.write(`${JSON.stringify(instruction)}\n`)
}

function startWatchdog(): ChildProcess {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./watchdog-process.mjs', import.meta.url))], {
    // Its own group: a Ctrl-C in the terminal goes to the whole group and must not end the one that cleans up.
    detached: true,
    cwd: '/',
    env: {},
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  child.on('error', (cause) => {
    throw new Error('The watchdog that ends test servers could not start, so no server may start either.', { cause })
  })
  // Somebody ended the watchdog. The next instruction starts a new one; servers started before it are unguarded.
  child.once('exit', () => {
    watchdog = undefined
  })
  child.stdin.on('error', () => undefined)
  child.unref()
  // A child's standard input is a socket; without this it would keep an otherwise finished process alive.
  const pipe: unknown = child.stdin
  if (hasUnref(pipe)) pipe.unref()
  return child
}

function hasUnref(value: unknown): value is { unref(): void } {
  return typeof value === 'object' && value !== null && 'unref' in value && typeof value.unref === 'function'
}

/** Ends this process tree when the current process is gone, first with `stopSignal`, then with SIGKILL. */
export function guardProcess(pid: number, stopSignal: NodeJS.Signals): void {
  tell(['server', pid, stopSignal])
}

export function releaseProcess(pid: number): void {
  tell(['forget-server', pid])
}

/** Removes this folder when the current process is gone. Call it before the folder is made. */
export function guardFolder(path: string): void {
  tell(['folder', path])
}

export function releaseFolder(path: string): void {
  tell(['forget-folder', path])
}
