import { type ChildProcess, fork } from 'node:child_process'
import type { OutboxEvent, RunResult } from '@inorder/core'
import { fileURLToPath } from 'node:url'
import type { PublishReply, PublishRequest } from '../../stand/remote-publisher.ts'
import type { FromProgram, ProgramOrders } from './relay-program.ts'

/** A relay in a process of its own, and what it asked the broker, which is the test, to publish. */
export interface RelayProgram extends AsyncDisposable {
  readonly requests: readonly PublishRequest[]
  readonly published: () => readonly OutboxEvent[]
  /** Answers a request, by default with everything acknowledged. */
  answer(request: PublishRequest, result?: RunResult): void
  signal(name: 'SIGTERM' | 'SIGKILL'): void
  /** Resolves when the program has said it so many times. */
  said(kind: FromProgram['kind'], times?: number): Promise<void>
  /** The exit code, or the signal that ended it. */
  readonly end: Promise<number | string>
}

const root = fileURLToPath(new URL('../../../', import.meta.url))
const program = fileURLToPath(new URL('./relay-program.ts', import.meta.url))

/** Starts it; resolves when the relay runs. */
export async function startRelayProgram(orders: ProgramOrders): Promise<RelayProgram> {
  const child: ChildProcess = fork(program, [JSON.stringify(orders)], {
    cwd: root,
    execArgv: ['--conditions=@inorder/source', '--import', 'tsx'],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const said: FromProgram[] = []
  const waiting = new Set<() => void>()
  const end = new Promise<number | string>((resolve) => {
    child.once('close', (code, signal) => resolve(signal ?? code ?? 'unknown'))
  })
  child.on('message', (message) => {
    said.push(message as FromProgram)
    for (const ask of waiting) ask()
  })

  function until(kind: FromProgram['kind'], times = 1): Promise<void> {
    return new Promise((resolve, reject) => {
      const ask = (): void => {
        if (said.filter((message) => message.kind === kind).length < times) return
        waiting.delete(ask)
        resolve()
      }
      waiting.add(ask)
      ask()
      void end.then((how) => reject(new Error(`the program ended with ${String(how)} before it said ${kind}`)))
    })
  }

  const requests = (): PublishRequest[] => said.filter((message) => message.kind === 'publish')
  await until('started')
  return {
    get requests() {
      return requests()
    },
    published: () => requests().flatMap(({ run }) => run),
    answer(request, result = { acknowledged: request.run.length }) {
      child.send({ kind: 'published', call: request.call, result } satisfies PublishReply)
    },
    signal: (name) => void child.kill(name),
    said: until,
    end,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await end
    },
  }
}
