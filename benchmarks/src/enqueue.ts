import { randomBytes, randomUUID } from 'node:crypto'
import type pg from 'pg'
import type { Benchmark, BenchmarkContext } from './benchmark.ts'
import { type Figure, rounded } from './figure.ts'
import { type OutboxUnderTest, startBenchmarkServer } from './server.ts'
import { median, medianRatio } from './statistics.ts'
import type { Table } from './table.ts'

const payloadBytes = 200
/** Calls of each size in one repetition. */
const sizes = [
  { events: 1, calls: 300 },
  { events: 100, calls: 30 },
  { events: 10_000, calls: 2 },
]

interface Cost {
  readonly microseconds: number
  readonly walBytes: number
}

const ways = ['bare insert', 'enqueue'] as const
type Way = (typeof ways)[number]
/** How many write at once in the second table. */
const writerCounts = [1, 32]
/** Seconds of each of its measurements at most. */
const mostSeconds = 5
type Writer = (client: pg.PoolClient, events: number) => Promise<void>

export const enqueue: Benchmark = {
  name: 'enqueue',
  about: 'time and WAL of an event, against a bare insert into a table with only a primary key',
  async run(context) {
    await using server = await startBenchmarkServer()
    await using under = await server.outbox()
    // The same row, whose lane nobody computes, whose checks nobody makes, and which no other index has.
    await under.pool.query(
      'create table bare (like outbox.events including defaults including identity, primary key (id)); alter table bare alter lane set default 0',
    )
    const rows: string[][] = []
    const figures: Figure[] = []
    for (const size of sizes) {
      const costs = await measureSize(under, size, context)
      const [bare, ours] = [middle(costs['bare insert']), middle(costs.enqueue)]
      const name = `${rounded(size.events)} a call`
      for (const [way, cost] of [
        ['bare insert', bare],
        ['enqueue', ours],
      ] as const) {
        rows.push([
          name,
          way,
          rounded(cost.microseconds),
          rounded(cost.walBytes),
          rounded(cost.microseconds / bare.microseconds),
          rounded(cost.walBytes / bare.walBytes),
        ])
        figures.push(
          { name: `${name} ${way} time`, value: cost.microseconds, unit: 'us/event' },
          { name: `${name} ${way} WAL`, value: cost.walBytes, unit: 'bytes/event' },
        )
      }
      figures.push(
        {
          name: `${name} time of bare`,
          value: ours.microseconds / bare.microseconds,
          unit: '',
          ...(size.events === 1 ? { target: { atMost: 2, tolerance: 0.1 } } : {}),
        },
        {
          name: `${name} WAL of bare`,
          value: ours.walBytes / bare.walBytes,
          unit: '',
          ...(size.events === 1 ? { target: { atMost: 1.6, tolerance: 0.1 } } : {}),
        },
      )
    }
    const commits = await measureCommits(under, context)
    figures.push(...commits.figures)
    const table = {
      title: `Writing events of ${payloadBytes} bytes inside transactions, the commit not counted`,
      head: ['', 'way', 'us/event', 'WAL B/event', 'time of bare', 'WAL of bare'],
      rows,
    }
    return { tables: [table, commits.table], figures, environment: server.environment, broken: [] }
  },
}

const columns = 'event_id, topic, key, type, payload, content_type, headers'
const insertOne = `insert into bare (${columns}) values ($1, $2, $3, $4, $5, $6, $7)`
const insertMany = `insert into bare (${columns}) select * from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::text[], $7::jsonb[])`

/** What a careful outbox of one's own writes for an event. */
function bareEvent(): unknown[] {
  return [randomUUID(), 'orders', `key-${random()}`, null, Buffer.alloc(payloadBytes, '{'), 'application/json', '{}']
}

function columnsOf(rows: readonly (readonly unknown[])[]): unknown[][] {
  return (rows[0] ?? []).map((_, column) => rows.map((row) => row[column]))
}

function writersOf({ outbox }: OutboxUnderTest): Record<Way, Writer> {
  return {
    'bare insert': async (client, count) => {
      await client.query(
        count === 1 ? insertOne : insertMany,
        count === 1 ? bareEvent() : columnsOf(made(count, bareEvent)),
      )
    },
    enqueue: async (client, count) => {
      await outbox.enqueue(
        client,
        made(count, () => ({ topic: 'orders', key: `key-${random()}`, payload: Buffer.alloc(payloadBytes, '{') })),
      )
    },
  }
}

async function measureSize(
  under: OutboxUnderTest,
  { events, calls }: (typeof sizes)[number],
  { repetitions, say }: BenchmarkContext,
): Promise<Record<Way, Cost[]>> {
  const writers = writersOf(under)
  const costs: Record<Way, Cost[]> = { 'bare insert': [], enqueue: [] }
  for (let repetition = 1; repetition <= repetitions; repetition++) {
    for (const way of ways) {
      const cost = await measure(under.pool, writers[way], events, calls)
      costs[way].push(cost)
      say(
        `${rounded(events)} a call, ${way}: ${rounded(cost.microseconds)} us and ${rounded(cost.walBytes)} bytes an event`,
      )
    }
  }
  return costs
}

/** Whole transactions of one event each, as many as so many writers manage. */
async function measureCommits(
  under: OutboxUnderTest,
  { repetitions, seconds, say }: BenchmarkContext,
): Promise<{ table: Table; figures: Figure[] }> {
  const writers = writersOf(under)
  const rows: string[][] = []
  const figures: Figure[] = []
  for (const count of writerCounts) {
    const rates: Record<Way, number[]> = { 'bare insert': [], enqueue: [] }
    for (let repetition = 1; repetition <= repetitions; repetition++) {
      for (const way of ways) {
        rates[way].push(await commitsPerSecond(under.pool, writers[way], count, Math.min(seconds, mostSeconds)))
        say(`${count} writers, ${way}: ${rounded(rates[way].at(-1) ?? 0)} commits/s`)
      }
    }
    const ratio = medianRatio(rates.enqueue, rates['bare insert'])
    for (const way of ways) rows.push([String(count), way, rounded(median(rates[way]))])
    rows.push([String(count), 'enqueue of bare', rounded(ratio)])
    figures.push({
      name: `${count} writers, commits/s of bare`,
      value: ratio,
      unit: '',
      target: { atLeast: 0.85, tolerance: 0.1 },
    })
  }
  return { table: { title: 'Transactions of one event each', head: ['writers', 'way', 'commits/s'], rows }, figures }
}

async function commitsPerSecond(pool: pg.Pool, write: Writer, writers: number, seconds: number): Promise<number> {
  const clients = await Promise.all(Array.from({ length: writers }, () => pool.connect()))
  const end = performance.now() + seconds * 1000
  let commits = 0
  await Promise.all(
    clients.map(async (client) => {
      while (performance.now() < end) {
        await inTransaction(client, () => write(client, 1))
        commits += 1
      }
      client.release()
    }),
  )
  return commits / seconds
}

async function measure(pool: pg.Pool, write: Writer, events: number, calls: number): Promise<Cost> {
  const client = await pool.connect()
  try {
    // The first calls after a checkpoint log whole pages. Those belong to the checkpoint and not to the event.
    for (let call = 0; call < Math.min(calls, 20); call++) await inTransaction(client, () => write(client, events))
    const before = await walPosition(client)
    let spent = 0
    for (let call = 0; call < calls; call++) {
      await inTransaction(client, async () => {
        const began = performance.now()
        await write(client, events)
        spent += performance.now() - began
      })
    }
    const written = await walSince(client, before)
    return { microseconds: (spent * 1000) / (events * calls), walBytes: written / (events * calls) }
  } finally {
    client.release()
  }
}

async function inTransaction(client: pg.PoolClient, work: () => Promise<void>): Promise<void> {
  await client.query('begin')
  await work()
  await client.query('commit')
}

async function walPosition(client: pg.PoolClient): Promise<string> {
  const { rows } = await client.query<{ at: string }>('select pg_current_wal_insert_lsn()::text at')
  return rows[0]?.at ?? '0/0'
}

async function walSince(client: pg.PoolClient, from: string): Promise<number> {
  const { rows } = await client.query<{ bytes: string }>(
    'select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), $1) bytes',
    [from],
  )
  return Number(rows[0]?.bytes)
}

function middle(costs: readonly Cost[]): Cost {
  return {
    microseconds: median(costs.map(({ microseconds }) => microseconds)),
    walBytes: median(costs.map(({ walBytes }) => walBytes)),
  }
}

function made<T>(count: number, make: () => T): T[] {
  return Array.from({ length: count }, make)
}

function random(): string {
  return randomBytes(4).toString('hex')
}
