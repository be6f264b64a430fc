import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { FromRelay, FromWriter, RelayOrders, ToRelay, WriterOrders } from './messages.ts'

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
export function startMember(orders: RelayOrders, onMessage: (message: FromRelay) => void): Member<ToRelay>
export function startMember(orders: WriterOrders, onMessage: (message: FromWriter) => void): Member<never>
export function startMember(orders: RelayOrders | WriterOrders, onMessage: (message: never) => void): Member<ToRelay> {
  const file = fileURLToPath(new URL(`./${orders.role}-process.ts`, import.meta.url))
  const child = fork(file, [JSON.stringify(orders)], {
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  child.on('message', (message) => {
    onMessage(message as never)
  })
  return {
    name: orders.name,
    send(message) {
      // A process that is ending has no channel any more; what became of it is told by `gone`.
      if (child.connected) child.send(message, () => undefined)
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
