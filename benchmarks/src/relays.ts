import type { Benchmark, BenchmarkContext } from './benchmark.ts'
import { type Figure, rounded } from './figure.ts'
import { fill } from './fill.ts'
import { pause, startCrew } from './relay-crew.ts'
import { type BenchmarkServer, openClient, startBenchmarkServer } from './server.ts'
import { median, medianRatio } from './statistics.ts'

const keys = 1000
const crews = [1, 4] as const
/** Pairs of measurements, one of each kind right after the other. */
const pairs = 5
const pollMs = 5

interface Drained {
  readonly eventsPerSecond: number
  readonly duplicates: number
  readonly cpuSeconds: number
}

export const relays: Benchmark = {
  name: 'relays',
  about: 'throughput of four relay processes on one database, against one',
  async run(context) {
    await using server = await startBenchmarkServer()
    const rates: Record<(typeof crews)[number], number[]> = { 1: [], 4: [] }
    const broken: string[] = []
    const rows: string[][] = []
    for (let pair = 1; pair <= pairs; pair++) {
      for (const count of crews) {
        const { eventsPerSecond, duplicates, cpuSeconds } = await drainByCrew(server, count, context)
        rates[count].push(eventsPerSecond)
        rows.push([String(pair), String(count), rounded(eventsPerSecond), rounded(cpuSeconds), String(duplicates)])
        if (duplicates > 0) broken.push(`${count} relays delivered ${duplicates} events twice without a fault`)
      }
    }
    const figures: Figure[] = [
      { name: 'one relay', value: median(rates[1]), unit: 'events/s' },
      { name: 'four relays', value: median(rates[4]), unit: 'events/s' },
      {
        name: 'four of one',
        value: medianRatio(rates[4], rates[1]),
        unit: '',
        target: { atLeast: 0.9, tolerance: 0.1 },
      },
    ]
    const table = {
      title: `A committed backlog of ${rounded(context.rows ?? defaultRows)} events over ${keys} keys, from its commit on`,
      head: ['pair', 'relays', 'events/s', 'cpu s of the relays', 'duplicates'],
      rows,
    }
    return { tables: [table], figures, environment: server.environment, broken }
  },
}

const defaultRows = 100_000

/** The relays are there, each with its share of the slots, before one transaction commits all events. */
async function drainByCrew(
  server: BenchmarkServer,
  count: number,
  { rows = defaultRows, say }: BenchmarkContext,
): Promise<Drained> {
  const url = await server.emptyOutbox()
  await using client = await openClient(url)
  const crew = await startCrew(count, { url })
  await client.query('begin')
  await fill(client, { rows, key: `'key-' || (n % ${keys})` })
  await client.query('commit')
  const began = performance.now()
  await untilPublished(client)
  const seconds = (performance.now() - began) / 1000
  const ends = await Promise.all(crew.map((member) => member.stop()))
  const delivered = ends.reduce((sum, end) => sum + end.delivered, 0)
  const cpuSeconds = ends.reduce((sum, end) => sum + end.cpuSeconds, 0)
  say(`${count} relays: ${rounded(rows / seconds)} events/s`)
  await client[Symbol.asyncDispose]()
  await server.drop(url)
  return { eventsPerSecond: rows / seconds, duplicates: delivered - rows, cpuSeconds }
}

export async function untilPublished(client: Awaited<ReturnType<typeof openClient>>): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ left: boolean }>(
      "select exists (select from outbox.events where status in ('pending', 'held')) left",
    )
    if (rows[0]?.left === false) return
    await pause(pollMs)
  }
}
