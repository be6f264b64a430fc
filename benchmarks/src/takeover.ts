import type { Benchmark } from './benchmark.ts'
import { type Figure, rounded } from './figure.ts'
import { fill } from './fill.ts'
import { pause, startCrew } from './relay-crew.ts'
import { untilPublished } from './relays.ts'
import { type BenchmarkServer, openClient, startBenchmarkServer } from './server.ts'
import { median } from './statistics.ts'

const leaseMs = 10_000
/** One event for each of so many keys meets every slot. */
const keys = 2000
const pollMs = 5

export const takeover: Benchmark = {
  name: 'takeover',
  about: 'how long events wait when one of two relay processes is killed, and when one stops',
  async run({ repetitions, say }) {
    await using server = await startBenchmarkServer()
    const killed: number[] = []
    const stops: number[] = []
    const owned: number[] = []
    for (let repetition = 1; repetition <= repetitions; repetition++) {
      killed.push(await afterKill(server))
      say(`killed: everything was published after ${rounded(killed.at(-1) ?? 0)} ms`)
      const clean = await afterStop(server)
      stops.push(clean.tookMs)
      owned.push(clean.ownedMs)
      say(`stopped in ${rounded(clean.tookMs)} ms, its slots had new owners after ${rounded(clean.ownedMs)} ms`)
    }
    const figures: Figure[] = [
      {
        name: 'killed, until all is published',
        value: Math.max(...killed),
        unit: 'ms',
        target: { atMost: leaseMs + 1000, tolerance: 0 },
      },
      { name: 'clean stop', value: Math.max(...stops), unit: 'ms', target: { atMost: 200, tolerance: 0.5 } },
      {
        name: 'stopped, until others own its slots',
        value: Math.max(...owned),
        unit: 'ms',
        target: { atMost: leaseMs / 3, tolerance: 0 },
      },
    ]
    const line = (name: string, values: readonly number[]): string[] => [
      name,
      rounded(Math.min(...values)),
      rounded(median(values)),
      rounded(Math.max(...values)),
    ]
    const table = {
      title: `One of two relays goes, lease ${leaseMs} ms, in ms`,
      head: ['', 'least', 'median', 'most'],
      rows: [
        line('SIGKILL until the events of all keys are published', killed),
        line('stop() until it resolves', stops),
        line('stop() resolved until others own all slots', owned),
      ],
    }
    return { tables: [table], figures, environment: server.environment, broken: [] }
  },
}

async function afterKill(server: BenchmarkServer): Promise<number> {
  const url = await server.emptyOutbox()
  await using client = await openClient(url)
  const [victim, survivor] = await startCrew(2, { url })
  await victim?.kill()
  const began = performance.now()
  await fill(client, { rows: keys, key: "'key-' || n" })
  await untilPublished(client)
  const took = performance.now() - began
  await survivor?.stop()
  return took
}

async function afterStop(server: BenchmarkServer): Promise<{ tookMs: number; ownedMs: number }> {
  const url = await server.emptyOutbox()
  const [leaver, other] = await startCrew(2, { url })
  if (leaver === undefined || other === undefined) throw new Error('there are no two relays')
  const { tookMs } = await leaver.stop()
  const began = performance.now()
  while (other.owned < 256) await pause(pollMs)
  const ownedMs = performance.now() - began
  await other.stop()
  return { tookMs, ownedMs }
}
