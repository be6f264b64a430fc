import { type ChildProcess, fork } from 'node:child_process'
import { guardProcess, releaseProcess } from '@inorder/harness'

/** A process that belongs to the stand. */
export interface Member<In> {
  readonly name: string
  send(message: In): void
  /** SIGKILL: nothing of it runs on, nothing is released. */
  kill(): void
  /** SIGSTOP: it is frozen and does not know. */
  pause(): void
  resume(): void
  /** Resolves when it is gone, with how: `0` is a clean end. */
  readonly gone: Promise<string>
}

/**
 * Starts a program with the options of this process, and more of node's if given, and hands it its orders. Messages keep bytes, dates and errors as
 * they are, and arrive in the order in which they were sent.
 */
export function startMember<In extends object>(
  program: URL,
  orders: { readonly name: string },
  onMessage: (message: unknown) => void,
  nodeOptions: readonly string[] = [],
): Member<In> {
  const child = fork(program, [JSON.stringify(orders)], {
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    execArgv: [...process.execArgv, ...nodeOptions],
  })
  const { pid } = child
  // A member that is frozen would not notice that this process is gone.
  if (pid !== undefined) guardProcess(pid, 'SIGKILL')
  child.on('message', (message) => {
    onMessage(message)
  })
  return {
    name: orders.name,
    send(message) {
      // A process that is ending has no channel any more; what became of it is told by `gone`.
      if (child.connected) child.send(message, () => undefined)
    },
    kill: () => child.kill('SIGKILL'),
    pause: () => child.kill('SIGSTOP'),
    resume: () => child.kill('SIGCONT'),
    gone: endOf(child).finally(() => {
      if (pid !== undefined) releaseProcess(pid)
    }),
  }
}

function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    // `close` and not `exit`: everything it said has been read by then.
    child.once('close', (code, signal) => resolve(signal ?? String(code)))
    child.once('error', (error) => resolve(error.message))
  })
}
