import { memoryBroker, memoryPublisher } from '@inorder/relay-memory'
import { openOutbox } from './server.ts'

// A process of its own, so that nothing but the relay is on its heap. Started with --expose-gc by memory.ts.

export interface HeapReport {
  readonly heapBytes: number
  readonly residentBytes: number
  readonly published: number
}

const looks = 10
const lookEveryMs = 500
/** With this much time for a call the relay keeps all that it may have in flight, and the backlog stays. */
const slowRunMs = 2000

const [url = ''] = process.argv.slice(2)
const under = await openOutbox(url)
const broker = memoryBroker({ recording: 'count' })
broker.setLatency({ perRunMs: slowRunMs })
const relay = under.outbox.relay({ publisher: memoryPublisher(broker) })
await relay.start()
let heapBytes = 0
for (let look = 0; look < looks; look++) {
  await new Promise((resolve) => setTimeout(resolve, lookEveryMs))
  globalThis.gc?.()
  heapBytes = Math.max(heapBytes, process.memoryUsage().heapUsed)
}
const report: HeapReport = { heapBytes, residentBytes: process.memoryUsage().rss, published: broker.count }
process.send?.(report)
await relay.stop()
await under[Symbol.asyncDispose]()
process.disconnect()
