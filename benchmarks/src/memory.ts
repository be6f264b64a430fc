import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Benchmark, BenchmarkContext } from './benchmark.ts'
import { type Figure, rounded } from './figure.ts'
import { fill } from './fill.ts'
import type { HeapReport } from './memory-relay.ts'
import { type BenchmarkServer, openClient, startBenchmarkServer } from './server.ts'

const smallBacklog = 10_000

export const memory: Benchmark = {
  name: 'memory',
  about: 'heap of a relay after garbage collection, with a backlog of 10,000 and of a million events',
  async run(context) {
    await using server = await startBenchmarkServer()
    const backlogs = [smallBacklog, context.rows ?? 1_000_000]
    const heaps: number[] = []
    const rows: string[][] = []
    for (const backlog of backlogs) {
      const { heapBytes, published, residentBytes } = await measureBacklog(server, backlog, context)
      heaps.push(heapBytes)
      rows.push([rounded(backlog), rounded(heapBytes / 2 ** 20), rounded(residentBytes / 2 ** 20), rounded(published)])
    }
    const [small = 0, large = 0] = heaps
    const figures: Figure[] = [
      { name: 'heap at the small backlog', value: small / 2 ** 20, unit: 'MB' },
      { name: 'heap at the large backlog', value: large / 2 ** 20, unit: 'MB' },
      {
        name: 'heap that the backlog adds',
        value: Math.max(0, large - small) / 2 ** 20,
        unit: 'MB',
        target: { atMost: 30, tolerance: 0.1 },
      },
    ]
    const table = {
      title: 'Memory of a relay that drains slowly, most of ten looks after garbage collection',
      head: ['backlog', 'heap MB', 'resident MB', 'published meanwhile'],
      rows,
    }
    return { tables: [table], figures, environment: server.environment, broken: [] }
  },
}

async function measureBacklog(
  server: BenchmarkServer,
  backlog: number,
  { say }: BenchmarkContext,
): Promise<HeapReport> {
  say(`filling ${rounded(backlog)} events`)
  const { url } = await filledOutbox(server, backlog)
  say('a relay drains them slowly')
  const child = fork(fileURLToPath(new URL('memory-relay.ts', import.meta.url)), [url], {
    execArgv: [...process.execArgv, '--expose-gc'],
  })
  const [report] = (await Promise.race([once(child, 'message'), failed(child)])) as [HeapReport]
  await once(child, 'exit')
  await server.drop(url)
  return report
}

/** Ten events of each key at any size, so that the relay's runs are alike. */
async function filledOutbox(server: BenchmarkServer, rows: number): Promise<{ url: string }> {
  await using under = await server.outbox()
  await using client = await openClient(under.url)
  await client.query('set synchronous_commit = off')
  await fill(client, { rows, key: `'key-' || (n % ${Math.ceil(rows / 10)})` })
  await client.query('vacuum (analyze) outbox.events')
  return { url: under.url }
}

async function failed(child: ReturnType<typeof fork>): Promise<never> {
  const [code] = (await once(child, 'exit')) as [number | null]
  throw new Error(`the relay process ended with ${String(code)} before it reported its heap`)
}
