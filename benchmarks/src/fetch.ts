import { type Benchmark, type BenchmarkContext, wanted } from './benchmark.ts'
import { type Figure, rounded } from './figure.ts'
import { timeObviousQuery } from './obvious-query.ts'
import { openProber, type Probe, type Prober } from './probe.ts'
import { type Regime, regimes, type Stage, type Step } from './regimes.ts'
import { type BenchmarkServer, openClient, startBenchmarkServer } from './server.ts'

/**
 * stale: planned on the empty table, by a session that was there before the rows were, which keeps that plan. fresh:
 * after ANALYZE, by a new session. Autovacuum leaves the table alone, because it would refresh the statistics.
 */
type Statistics = 'stale' | 'fresh'

interface Cell {
  readonly step: string
  readonly what: string
  readonly statistics: Statistics
  readonly ms: number
  readonly capped: boolean
  readonly target: number | undefined
}

/** Reads no table. What the machine is busy with shows here too, so the others are read against it. */
const roundTrip: Probe = { name: 'a statement that reads nothing', statement: 'snapshot' }

const obvious = 'obvious query, 100 heads'

export const fetch: Benchmark = {
  name: 'fetch',
  about: 'find, due and sweep in every hard state of the table, beside the obvious query',
  async run(context) {
    await using server = await startBenchmarkServer()
    const rows = context.rows ?? 1_000_000
    const cells: Cell[] = []
    for (const regime of regimes.filter(({ name }) => wanted(context.only, name))) {
      cells.push(...(await measureRegime(regime, server, rows, context)))
    }
    const table = {
      title: `Finding work at ${rounded(rows)} rows, p50 of 15 in ms, statistics from the empty table (stale) and fresh`,
      head: ['state of the table', 'statement', 'stale', 'fresh', 'target'],
      rows: tableRows(cells),
    }
    return { tables: [table], figures: cells.map(figureOf), environment: server.environment, broken: [] }
  },
}

async function measureRegime(
  regime: Regime,
  server: BenchmarkServer,
  rows: number,
  context: BenchmarkContext,
): Promise<Cell[]> {
  const url = await server.emptyOutbox()
  const others: AsyncDisposable[] = []
  try {
    return await measureSteps(regime, url, rows, context, async () => {
      const other = await openClient(url)
      others.push(other)
      return other
    })
  } finally {
    for (const other of others) await other[Symbol.asyncDispose]()
    await server.drop(url)
  }
}

async function measureSteps(
  regime: Regime,
  url: string,
  rows: number,
  context: BenchmarkContext,
  other: Stage['other'],
): Promise<Cell[]> {
  const cells: Cell[] = []
  await using client = await openClient(url)
  await client.query('alter table outbox.events set (autovacuum_enabled = off)')
  await using prober = await openProber(url)
  // Durable like everything else, but nobody waits for the disk while the table is being filled.
  await client.query('set synchronous_commit = off')
  let last: Step | undefined
  for (const step of regime.steps) {
    context.say(`${regime.name}: filling`)
    last = await step({ client, rows, prober, other })
    cells.push(...(await measure(last, 'stale', prober, url, context)))
  }
  if (last === undefined) return cells
  await client.query('analyze outbox.events')
  await using fresh = await openProber(url)
  cells.push(...(await measure(last, 'fresh', fresh, url, context)))
  return cells
}

async function measure(
  step: Step,
  statistics: Statistics,
  prober: Prober,
  url: string,
  { capSeconds, say }: BenchmarkContext,
): Promise<Cell[]> {
  const cells: Cell[] = []
  for (const probe of [roundTrip, ...step.probes]) cells.push(cellOf(step, probe, statistics, await prober.time(probe)))
  const { ms, capped } = await timeObviousQuery(url, capSeconds)
  cells.push({ step: step.name, what: obvious, statistics, ms, capped, target: undefined })
  for (const cell of cells) say(`${step.name}, ${statistics}, ${cell.what}: ${shown(cell)} ms`)
  return cells
}

function cellOf(step: Step, { name, target }: Probe, statistics: Statistics, ms: number): Cell {
  return { step: step.name, what: name, statistics, ms, capped: false, target }
}

function figureOf({ step, what, statistics, ms, target }: Cell): Figure {
  const name = `${step}, ${what}, ${statistics}`
  return {
    name,
    value: ms,
    unit: 'ms',
    ...(target === undefined ? {} : { target: { atMost: target, tolerance: 0.5 } }),
  }
}

function tableRows(cells: readonly Cell[]): string[][] {
  const rows = new Map<string, Partial<Record<Statistics, Cell>>>()
  for (const cell of cells) {
    const key = JSON.stringify([cell.step, cell.what])
    rows.set(key, { ...rows.get(key), [cell.statistics]: cell })
  }
  return [...rows].map(([key, { stale, fresh }]) => {
    const target = (stale ?? fresh)?.target
    return [...(JSON.parse(key) as string[]), shown(stale), shown(fresh), target === undefined ? '' : String(target)]
  })
}

function shown(cell: Cell | undefined): string {
  if (cell === undefined) return ''
  return cell.capped ? `> ${rounded(cell.ms)}` : rounded(cell.ms)
}
