import { createOutbox, fromPg, type Outbox, type PgClient, type PgPool, type SqlConnector } from '@inorder/core'
import pg from 'pg'
import { type Benchmark, type BenchmarkContext, wanted } from './benchmark.ts'
import { type Figure, rounded } from './figure.ts'
import { fill } from './fill.ts'
import { type BenchmarkServer, openClient, openOutbox, startBenchmarkServer } from './server.ts'
import { percentile } from './statistics.ts'

const defaultRows = 500_000
/** Of the rows of a requeue, how many a purge deletes. */
const purgedShare = 0.4
const enqueuesPerSecond = 200
const warmUpSeconds = 2
const aloneSeconds = 5
/** No statement may keep its locks, or its snapshot, for longer. */
const longestMs = 500

export const requeue: Benchmark = {
  name: 'requeue',
  about: 'an operator at work: requeue of 500,000 failed events, purge of 200,000 beside enqueues, counts of both',
  async run(context) {
    await using server = await startBenchmarkServer()
    const figures: Figure[] = []
    const broken: string[] = []
    const rows: string[][] = []
    const parts = [
      { name: 'requeue', measure: measureRequeue },
      { name: 'purge', measure: measurePurge },
    ]
    for (const { measure } of parts.filter((part) => wanted(context.only, part.name))) {
      const measured = await measure(server, context)
      figures.push(...measured.figures)
      broken.push(...measured.broken)
      for (const figure of measured.figures) rows.push([figure.name, rounded(figure.value), figure.unit])
    }
    const table = { title: 'An operator at work', head: ['', 'measured', 'unit'], rows }
    return { tables: [table], figures, environment: server.environment, broken }
  },
}

interface Measured {
  readonly figures: readonly Figure[]
  readonly broken: readonly string[]
}

async function measureRequeue(server: BenchmarkServer, context: BenchmarkContext): Promise<Measured> {
  const events = context.rows ?? defaultRows
  context.say(`filling ${rounded(events)} failed events`)
  await using under = await filled(server, events, "'key-' || (n % 100000)", {
    status: "'failed'",
    attempts: '10',
    failed_at: "now() - (n * 7919::bigint % 86400) * interval '1 s'",
    last_error: "'the broker says no'",
  })
  const countsMs = await timeCounts(under)
  under.statements.length = 0
  context.say('an operator requeues them')
  const began = performance.now()
  const report = await under.outbox.operator({ actor: 'benchmark' }).requeue({ status: 'failed' })
  const seconds = (performance.now() - began) / 1000
  return {
    figures: [
      { name: 'requeue', value: seconds, unit: 's', target: { atMost: (15 * events) / defaultRows, tolerance: 0.5 } },
      { name: 'requeue, events a second', value: events / seconds, unit: '/s' },
      statementFigure('requeue', under.statements),
      // The first look at 10,000 rows that lie all over the table: what this costs is up to the disk.
      { name: 'counts beside failed events', value: countsMs, unit: 'ms' },
    ],
    broken: report.changed === events ? [] : [`requeue changed ${report.changed} of ${events} events`],
  }
}

async function measurePurge(server: BenchmarkServer, context: BenchmarkContext): Promise<Measured> {
  const events = Math.round((context.rows ?? defaultRows) * purgedShare)
  context.say(`filling ${rounded(events)} published events`)
  await using under = await filled(server, events, "'key-' || (n % 100000)", {
    status: "'published'",
    published_at: "now() - interval '8 days' + n * interval '1 ms'",
  })
  const countsMs = await timeCounts(under)
  under.statements.length = 0
  await using application = await openOutbox(under.url)
  const writeAlone = async (forSeconds: number): Promise<number[]> => {
    const writer = await startWriter(application.outbox, application.pool)
    await new Promise((resolve) => setTimeout(resolve, forSeconds * 1000))
    return writer.stop()
  }
  context.say('somebody enqueues')
  // The first second opens connections.
  await writeAlone(warmUpSeconds)
  const aloneMs = await writeAlone(aloneSeconds)
  context.say('an operator purges beside it')
  const writer = await startWriter(application.outbox, application.pool)
  const began = performance.now()
  const report = await under.outbox.operator({ actor: 'benchmark' }).purge()
  const seconds = (performance.now() - began) / 1000
  const enqueueMs = await writer.stop()
  return {
    figures: [
      { name: 'purge', value: seconds, unit: 's' },
      { name: 'purge, events a second', value: events / seconds, unit: '/s' },
      statementFigure('purge', under.statements),
      { name: 'enqueue alone, p99', value: percentile(aloneMs, 0.99), unit: 'ms' },
      {
        name: 'enqueue beside the purge, p99',
        value: percentile(enqueueMs, 0.99),
        unit: 'ms',
        target: { atMost: 100, tolerance: 0.5 },
      },
      { name: 'counts beside published events', value: countsMs, unit: 'ms', target: { atMost: 300, tolerance: 0.5 } },
    ],
    broken: report.deleted === events ? [] : [`purge deleted ${report.deleted} of ${events} events`],
  }
}

function statementFigure(verb: string, statements: readonly number[]): Figure {
  return {
    name: `${verb}, longest statement`,
    value: Math.max(...statements),
    unit: 'ms',
    target: { atMost: longestMs, tolerance: 0.5 },
  }
}

interface Timed extends AsyncDisposable {
  readonly url: string
  readonly outbox: Outbox<PgClient, PgPool | PgClient>
  /** How long each statement of the operator took, in ms. */
  readonly statements: number[]
}

/** An outbox with so many events, whose operator's statements are timed. */
async function filled(
  server: BenchmarkServer,
  rows: number,
  key: string,
  columns: Record<string, string>,
): Promise<Timed> {
  const url = await server.emptyOutbox()
  await using client = await openClient(url)
  await client.query('set synchronous_commit = off')
  await fill(client, { rows, key, columns })
  await client.query('vacuum (analyze) outbox.events')
  await client.query('checkpoint')
  const pool = new pg.Pool({ connectionString: url, max: 5 })
  const statements: number[] = []
  const inner = fromPg(pool)
  const outbox = createOutbox({ client: { ...inner, ...timed(inner, (ms) => statements.push(ms)) } })
  return {
    url,
    outbox,
    statements,
    async [Symbol.asyncDispose]() {
      await outbox.close()
      await pool.end()
    },
  }
}

function timed(connector: SqlConnector, onStatement: (ms: number) => void): Pick<SqlConnector, 'connect'> {
  return {
    async connect() {
      const connection = await connector.connect()
      return {
        ...connection,
        async run(statement) {
          const began = performance.now()
          try {
            return await connection.run(statement)
          } finally {
            onStatement(performance.now() - began)
          }
        },
      }
    },
  }
}

async function timeCounts({ outbox }: Timed): Promise<number> {
  const began = performance.now()
  await outbox.operator({ actor: 'benchmark' }).counts()
  return performance.now() - began
}

/** Enqueues at a steady rate by the clock; answers with how long each transaction took, in ms. */
async function startWriter(
  outbox: Awaited<ReturnType<typeof openOutbox>>['outbox'],
  pool: PgPool,
): Promise<{ stop(): Promise<number[]> }> {
  const taken: number[] = []
  const writes: Promise<void>[] = []
  const stopped = new AbortController()
  const write = async (number: number): Promise<void> => {
    const began = performance.now()
    await outbox.transaction(pool, (tx) =>
      outbox.enqueue(tx, { topic: 'orders', key: `new-${number}`, payload: { number } }),
    )
    taken.push(performance.now() - began)
  }
  const began = performance.now()
  const loop = (async () => {
    for (let number = 0; !stopped.signal.aborted; number++) {
      const due = began + (number * 1000) / enqueuesPerSecond
      if (due > performance.now()) await new Promise((resolve) => setTimeout(resolve, due - performance.now()))
      writes.push(write(number))
    }
  })()
  return {
    async stop() {
      stopped.abort()
      await loop
      await Promise.all(writes)
      return taken
    },
  }
}
