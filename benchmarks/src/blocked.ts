import type { Benchmark } from './benchmark.ts'
import type { Figure } from './figure.ts'
import { rounded } from './figure.ts'
import { fill, fillBlocked } from './fill.ts'
import { openProber } from './probe.ts'
import { openClient, startBenchmarkServer } from './server.ts'

const rowsOfALane = 10

export const blocked: Benchmark = {
  name: 'blocked',
  about: 'what 100,000 lanes that wait for a retry add to the time of find',
  async run({ rows: lanes = 100_000, say }) {
    await using server = await startBenchmarkServer()
    const url = await server.emptyOutbox()
    await using client = await openClient(url)
    await using prober = await openProber(url)
    const measure = async (name: string): Promise<{ idle: number; heads: number }> => {
      const idle = await prober.time({ name: 'idle', statement: 'find', find: { previous: await prober.snapshot() } })
      const previous = await prober.snapshot()
      await fill(client, { rows: 100, key: `'${name}-' || n` })
      const heads = await prober.time({ name: 'heads', statement: 'find', find: { previous } })
      say(`${name}: nothing new ${rounded(idle)} ms, 100 new heads ${rounded(heads)} ms`)
      return { idle, heads }
    }
    const before = await measure('before')
    say(`filling ${rounded(lanes)} blocked lanes`)
    await fillBlocked(client, 0, lanes, rowsOfALane)
    const after = await measure('after')
    const figures: Figure[] = (['idle', 'heads'] as const).map((what) => ({
      name: what === 'idle' ? 'added to a find of nothing new' : 'added to a find of 100 new heads',
      value: after[what] - before[what],
      unit: 'ms',
      target: { atMost: 2, tolerance: 0.25 },
    }))
    const table = {
      title: `find with and without ${rounded(lanes)} blocked lanes of ${rowsOfALane} events, p50 of 15 in ms`,
      head: ['', 'none', 'blocked'],
      rows: [
        ['nothing new', rounded(before.idle), rounded(after.idle)],
        ['100 new heads', rounded(before.heads), rounded(after.heads)],
      ],
    }
    return { tables: [table], figures, environment: server.environment, broken: [] }
  },
}
