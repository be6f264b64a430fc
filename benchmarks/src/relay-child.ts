import { memoryBroker, memoryPublisher } from '@inorder/relay-memory'
import { openOutbox } from './server.ts'

// A relay in a process of its own, for benchmarks that need several of them, or one that can be killed.

export interface RelayOrders {
  readonly url: string
  readonly retainPublishedMs?: number
}

export type RelayReport =
  | { readonly kind: 'slots'; readonly owned: number }
  | { readonly kind: 'memory'; readonly heapBytes: number; readonly residentBytes: number }
  | { readonly kind: 'stopped'; readonly tookMs: number; readonly delivered: number; readonly cpuSeconds: number }

export type RelayCommand = 'stop' | 'memory'

const { url, ...options } = JSON.parse(process.argv[2] ?? '{}') as RelayOrders
const under = await openOutbox(url)
const broker = memoryBroker({ recording: 'count' })
const relay = under.outbox.relay({
  publisher: memoryPublisher(broker),
  ...options,
  onSignal(signal) {
    if (signal.kind === 'slots') tell({ kind: 'slots', owned: signal.owned })
  },
})
process.on('message', (command: RelayCommand) => {
  if (command === 'stop') void stop()
  else tellMemory()
})
await relay.start()

function tell(report: RelayReport): void {
  process.send?.(report)
}

function tellMemory(): void {
  globalThis.gc?.()
  const { heapUsed, rss } = process.memoryUsage()
  tell({ kind: 'memory', heapBytes: heapUsed, residentBytes: rss })
}

async function stop(): Promise<void> {
  const began = performance.now()
  await relay.stop()
  const tookMs = performance.now() - began
  const { user, system } = process.cpuUsage()
  tell({ kind: 'stopped', tookMs, delivered: broker.count, cpuSeconds: (user + system) / 1e6 })
  await under[Symbol.asyncDispose]()
  process.disconnect()
}
