import { Worker } from 'node:worker_threads'
import type { Publisher } from '@inorder/core'
import { type MemoryBroker, memoryPublisher } from '@inorder/relay-memory'
import type pg from 'pg'
import type { Departure } from '../../test/stand/explain.ts'
import { databaseTime, sessionsEnded } from '../../test/stand/outbox-state.ts'
import type { FromRelay, RelayOrders, ToRelay } from './relay-thread.ts'
import type { Screen } from './screen.ts'

export interface Relays extends AsyncDisposable {
  readonly departures: readonly Departure[]
  /** Resolves when the relay owns its first slots. */
  start(name: string): Promise<void>
  /**
   * Ends a relay between an acknowledgement and its settle: the broker takes its next run, and the relay is gone before
   * it hears so. Resolves with the number of events of that run.
   */
  kill(name: string): Promise<number>
  /** Resolves when every relay has stopped by itself. */
  stop(): Promise<void>
}

interface Thread {
  readonly worker: Worker
  readonly gone: Promise<void>
  readonly publisher: Publisher
  /** Set when the next run is the last one: called with its length once the broker has it. */
  lastRun: ((events: number) => void) | undefined
}

type Options = Omit<RelayOrders, 'name'> & {
  readonly db: pg.Pool
  readonly broker: MemoryBroker
  readonly screen: Screen
}

/** Relays in threads of this process, all of them publishing to one broker. */
export function createRelays({ db, broker, screen, ...orders }: Options): Relays {
  const threads = new Map<string, Thread>()
  const departures: Departure[] = []
  const { signal } = new AbortController()

  async function publish(thread: Thread, message: Extract<FromRelay, { kind: 'publish' }>): Promise<void> {
    const result = await thread.publisher.publish(message.run, signal)
    if (thread.lastRun !== undefined && result.acknowledged > 0) {
      await thread.worker.terminate()
      thread.lastRun(result.acknowledged)
      return
    }
    thread.worker.postMessage({ kind: 'published', call: message.call, result } satisfies ToRelay)
  }

  async function start(name: string): Promise<void> {
    const publisher = memoryPublisher(broker, { name })
    await publisher.connect(signal)
    const worker = new Worker(new URL('./relay-thread-start.mjs', import.meta.url), {
      workerData: { ...orders, name } satisfies RelayOrders,
    })
    const gone = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
    const thread: Thread = { worker, gone, publisher, lastRun: undefined }
    threads.set(name, thread)
    void gone.then(() => threads.delete(name))
    await new Promise<void>((resolve, reject) => {
      worker.once('error', reject)
      worker.on('message', (message: FromRelay) => {
        if (message.kind === 'publish') void publish(thread, message)
        else if (message.kind === 'slots' && message.gained > 0) {
          screen.say('relay', `${name} owns ${message.owned} of 256 slots`)
          resolve()
        }
      })
    })
  }

  async function stop(): Promise<void> {
    const all = [...threads.values()]
    for (const { worker } of all) worker.postMessage({ kind: 'stop' } satisfies ToRelay)
    await Promise.all(all.map(({ gone }) => gone))
  }

  return {
    departures,
    start,
    async kill(name) {
      const thread = threads.get(name)
      if (thread === undefined) throw new Error(`There is no ${name}`)
      const events = await new Promise<number>((resolve) => (thread.lastRun = resolve))
      await sessionsEnded(db, name)
      departures.push({ relay: name, how: 'killed', at: await databaseTime(db) })
      return events
    },
    stop,
    async [Symbol.asyncDispose]() {
      await Promise.all([...threads.values()].map(({ worker }) => worker.terminate()))
    },
  }
}
