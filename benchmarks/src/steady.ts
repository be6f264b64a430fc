import type { RelayOptions } from '@inorder/core'
import { memoryBroker, memoryPublisher } from '@inorder/relay-memory'
import { type Benchmark, type BenchmarkContext, wanted } from './benchmark.ts'
import { countingClient } from './counting-client.ts'
import { type Figure, rounded } from './figure.ts'
import { startBenchmarkServer } from './server.ts'
import { percentile } from './statistics.ts'
import { eventsPerSecond, keys, runTraffic } from './traffic.ts'

const idleSeconds = 60

interface Mode {
  readonly name: string
  readonly options: Partial<RelayOptions>
  /** Whether the writer wakes the relay after its commit. */
  readonly wakes: boolean
  readonly p50: number
  readonly p99: number
}

const modes: readonly Mode[] = [
  { name: 'polling alone', options: { listen: false }, wakes: false, p50: 8, p99: 40 },
  { name: 'with the wake-up', options: {}, wakes: true, p50: 3, p99: 40 },
]

export const steady: Benchmark = {
  name: 'steady',
  about: '300 events a second over 1,000 keys: commit to acknowledgement, and what an idle relay costs',
  async run(context) {
    await using server = await startBenchmarkServer()
    const figures: Figure[] = []
    const broken: string[] = []
    const rows: string[][] = []
    for (const mode of modes.filter(({ name }) => wanted(context.only, name))) {
      const url = await server.emptyOutbox()
      context.say(`${mode.name}: writing for ${context.seconds} s`)
      const { latencies, committed } = await runTraffic(url, {
        seconds: context.seconds,
        relay: mode.options,
        wakes: mode.wakes,
      })
      if (latencies.length !== committed)
        broken.push(`${mode.name}: ${committed - latencies.length} of ${committed} events lost`)
      const [p50, p99] = [percentile(latencies, 0.5), percentile(latencies, 0.99)]
      figures.push(
        { name: `${mode.name} p50`, value: p50, unit: 'ms', target: { atMost: mode.p50, tolerance: 0.5 } },
        { name: `${mode.name} p99`, value: p99, unit: 'ms', target: { atMost: mode.p99, tolerance: 0.5 } },
      )
      rows.push([
        mode.name,
        rounded(committed),
        rounded(p50),
        rounded(percentile(latencies, 0.9)),
        rounded(p99),
        rounded(Math.max(...latencies)),
      ])
    }
    const tables = [
      {
        title: `Steady ${eventsPerSecond} events/s over ${keys} keys for ${context.seconds} s, commit to acknowledgement in ms`,
        head: ['', 'events', 'p50', 'p90', 'p99', 'most'],
        rows,
      },
    ]
    if (wanted(context.only, 'idle')) {
      const perSecond = await measureIdle(await server.emptyOutbox(), context)
      figures.push({ name: 'idle statements', value: perSecond, unit: '/s', target: { atMost: 7, tolerance: 0.1 } })
      tables.push({
        title: `An idle relay for ${idleSeconds} s`,
        head: ['', 'statements/s'],
        rows: [['all of them', rounded(perSecond)]],
      })
    }
    return { tables, figures, environment: server.environment, broken }
  },
}

/** Every statement of a relay that has nothing to do, whatever its session: find, heartbeat and the background sweep. */
async function measureIdle(url: string, { say }: BenchmarkContext): Promise<number> {
  const counting = countingClient(url)
  try {
    const relay = counting.outbox.relay({ publisher: memoryPublisher(memoryBroker()) })
    await relay.start()
    // The first seconds are the start: claims, and a poll that has yet to slow down.
    await pauseSeconds(5)
    const before = counting.statements
    say(`idle for ${idleSeconds} s`)
    await pauseSeconds(idleSeconds)
    const perSecond = (counting.statements - before) / idleSeconds
    await relay.stop()
    return perSecond
  } finally {
    await counting.close()
  }
}

function pauseSeconds(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000))
}
