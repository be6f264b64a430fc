import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { RelayOrders, WriterOrders } from './messages.ts'

/** A process that belongs to the stand. */
export interface Member<In> {
  readonly name: string
  send(message: In): void
  /** SIGKILL: nothing of it runs on, nothing is released. */
  kill(): void
  /** Resolves when it is gone, with how: `0` is a clean end. */
  readonly gone: Promise<string>
}

/** Starts a process of this folder with the options of this one. Messages keep bytes, dates and errors as they are. */
export function startMember<In, Out>(orders: RelayOrders | WriterOrders, onMessage: (message: Out) => void): Member<In> {
  const file = fileURLToPath(new URL(`./${orders.role}-process.ts`, import.meta.url))
  const child = fork(file, [JSON.stringify(orders)], { serialization: 'advanced', stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  child.on('message', (message) => {
    onMessage(message as Out)
  })
  return {
    name: orders.name,
    send(message) {
      // A process that is ending has no channel any more; what became of it is told by `gone`.
      if (child.connected) child.send(message as object, () => undefined)
    },
    kill: () => child.kill('SIGKILL'),
    gone: endOf(child),
  }
}

function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    // `close` and not `exit`: everything it said has been read by then.
    child.once('close', (code, signal) => resolve(signal ?? String(code)))
    child.once('error', (error) => resolve(error.message))
  })
}
