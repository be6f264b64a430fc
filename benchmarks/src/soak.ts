import type { Benchmark } from './benchmark.ts'
import { type Figure, rounded } from './figure.ts'
import { pause, startCrew } from './relay-crew.ts'
import { openClient, openOutbox, startBenchmarkServer } from './server.ts'

const retainPublishedMs = 120_000
const eventsPerSecond = 1000
const eventsOfATransaction = 10
const keys = 1000
const lookEverySeconds = 30
const mebibyte = 2 ** 20

interface Look {
  readonly atSeconds: number
  readonly tableBytes: number
  readonly indexBytes: number
  readonly rows: number
  readonly heapBytes: number
  readonly residentBytes: number
}

export const soak: Benchmark = {
  name: 'soak',
  about: '1,000 events a second with a retention of two minutes: the table, its indexes and the relay stay as they are',
  async run({ seconds, say }) {
    await using server = await startBenchmarkServer()
    const url = await server.postgres.createDatabase()
    await using under = await openOutbox(url)
    await using client = await openClient(url)
    const [relay] = await startCrew(1, { url, retainPublishedMs })
    if (relay === undefined) throw new Error('there is no relay')
    const looks: Look[] = []
    const began = performance.now()
    const elapsed = (): number => (performance.now() - began) / 1000
    let written = 0
    const writing = (async () => {
      while (elapsed() < seconds) {
        const due = (written / eventsPerSecond) * 1000 + began
        if (due > performance.now()) await pause(due - performance.now())
        const events = Array.from({ length: eventsOfATransaction }, (_, n) => ({
          topic: 'orders',
          key: `key-${(written + n) % keys}`,
          payload: Buffer.alloc(200, 'x'),
        }))
        await under.outbox.transaction(under.pool, (tx) => under.outbox.enqueue(tx, events))
        written += eventsOfATransaction
      }
    })()
    while (elapsed() < seconds) {
      await pause(Math.min(lookEverySeconds, Math.max(0.1, seconds - elapsed())) * 1000)
      const { rows } = await client.query<{ table: string; index: string; rows: string }>(
        `select pg_table_size('outbox.events') "table", pg_indexes_size('outbox.events') "index", count(*) rows from outbox.events`,
      )
      const [size] = rows
      const { heapBytes, residentBytes } = await relay.memory()
      const look = {
        atSeconds: elapsed(),
        tableBytes: Number(size?.table),
        indexBytes: Number(size?.index),
        rows: Number(size?.rows),
        heapBytes,
        residentBytes,
      }
      looks.push(look)
      say(
        `${rounded(look.atSeconds)} s: table ${inMebibytes(look.tableBytes)}, indexes ${inMebibytes(look.indexBytes)}, ${rounded(look.rows)} rows, heap ${inMebibytes(heapBytes)} MB`,
      )
    }
    await writing
    const { delivered } = await relay.stop()
    await client.query('select 1')
    const { rows: left } = await client.query<{ left: string }>(
      'select count(*) "left" from outbox.events where status <> \'published\'',
    )
    const broken =
      Number(left[0]?.left) > 0 || delivered < written ? [`${written - delivered} events were not delivered`] : []
    const table = {
      title: `Soak of ${rounded(seconds)} s, ${rounded(written)} events written, ${rounded(delivered)} delivered`,
      head: ['s', 'table MB', 'indexes MB', 'rows', 'heap MB', 'resident MB'],
      rows: looks.map((look) => [
        rounded(look.atSeconds),
        inMebibytes(look.tableBytes),
        inMebibytes(look.indexBytes),
        rounded(look.rows),
        inMebibytes(look.heapBytes),
        inMebibytes(look.residentBytes),
      ]),
    }
    return { tables: [table], figures: figuresOf(looks), environment: server.environment, broken }
  },
}

/** Whether the last third is larger than the third before it: what levels off does not grow any more. */
function figuresOf(looks: readonly Look[]): Figure[] {
  const third = Math.floor(looks.length / 3)
  const grown = (of: (look: Look) => number): number => {
    const most = (part: readonly Look[]): number => Math.max(...part.map(of))
    return most(looks.slice(-third)) / most(looks.slice(-2 * third, -third))
  }
  if (third === 0) return []
  return [
    { name: 'table, last third of the middle one', value: grown((look) => look.tableBytes), unit: '', target: flat },
    { name: 'indexes, last third of the middle one', value: grown((look) => look.indexBytes), unit: '', target: flat },
    { name: 'heap, last third of the middle one', value: grown((look) => look.heapBytes), unit: '', target: flat },
  ]
}

const flat = { atMost: 1.1, tolerance: 0.05 }

function inMebibytes(bytes: number): string {
  return rounded(bytes / mebibyte)
}
