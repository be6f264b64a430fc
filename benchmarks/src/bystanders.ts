import type { MemoryBroker } from '@inorder/relay-memory'
import type { Benchmark } from './benchmark.ts'
import { type Figure, rounded } from './figure.ts'
import { type BenchmarkServer, startBenchmarkServer } from './server.ts'
import { median, medianRatio, percentile } from './statistics.ts'
import { eventsPerSecond, keys, runTraffic } from './traffic.ts'

const failingKey = 'failing'
/** Pairs of measurements, one of each kind right after the other. */
const pairs = 5

const ways = ['all well', 'one key fails'] as const
type Way = (typeof ways)[number]

export const bystanders: Benchmark = {
  name: 'bystanders',
  about: 'commit to acknowledgement of all other keys while one key fails again and again',
  async run({ seconds, say }) {
    await using server = await startBenchmarkServer()
    const p99: Record<Way, number[]> = { 'all well': [], 'one key fails': [] }
    const broken: string[] = []
    const rows: string[][] = []
    for (let pair = 1; pair <= pairs; pair++) {
      for (const way of ways) {
        const { latencies, committed } = await measureWay(server, way, seconds)
        if (latencies.length !== committed)
          broken.push(`${way}: ${committed - latencies.length} of ${committed} events did not arrive`)
        const value = percentile(latencies, 0.99)
        p99[way].push(value)
        say(`${way}: p99 ${rounded(value)} ms`)
        rows.push([String(pair), way, rounded(committed), rounded(percentile(latencies, 0.5)), rounded(value)])
      }
    }
    const figures: Figure[] = [
      { name: 'p99, all well', value: median(p99['all well']), unit: 'ms' },
      { name: 'p99, one key fails', value: median(p99['one key fails']), unit: 'ms' },
      {
        name: 'p99 of all well',
        value: medianRatio(p99['one key fails'], p99['all well']),
        unit: '',
        target: { atMost: 1.5, tolerance: 0.1 },
      },
    ]
    const table = {
      title: `${eventsPerSecond} events/s over ${keys} keys for ${seconds} s, the failing key not counted, in ms`,
      head: ['pair', '', 'events', 'p50', 'p99'],
      rows,
    }
    return { tables: [table], figures, environment: server.environment, broken }
  },
}

async function measureWay(server: BenchmarkServer, way: Way, seconds: number): ReturnType<typeof runTraffic> {
  const url = await server.emptyOutbox()
  const result = await runTraffic(url, {
    seconds,
    // It is tried as often as it can be, so that it costs the others the most.
    relay: { maxAttempts: Infinity, backoffBaseMs: 100, backoffCapMs: 100 },
    wakes: true,
    ...(way === 'all well' ? {} : { extraKey: failingKey, spoil: rejectFailingKey }),
  })
  await server.drop(url)
  return result
}

function rejectFailingKey(broker: MemoryBroker): void {
  broker.reject((event) => event.key === failingKey)
}
