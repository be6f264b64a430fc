import type pg from 'pg'
import type { Benchmark, BenchmarkContext } from './benchmark.ts'
import { type Figure, rounded } from './figure.ts'
import { type OutboxUnderTest, startBenchmarkServer } from './server.ts'
import { medianRatio, spreadOf } from './statistics.ts'

const clientCounts = [8, 32]
/** Seconds of each measurement; three ways, two client counts and the repetitions make the rest. */
const mostSeconds = 5

const ways = ['no notification', 'outbox.transaction', 'NOTIFY in each transaction'] as const
type Way = (typeof ways)[number]

export const wake: Benchmark = {
  name: 'wake',
  about:
    "writers' commits a second without notification, with the coalesced wake-up, and with NOTIFY in each transaction",
  async run(context) {
    await using server = await startBenchmarkServer()
    await using under = await server.outbox()
    const listener = await under.pool.connect()
    // As a relay of another process would: a NOTIFY that nobody listens to is cheaper.
    await listener.query('listen bench')
    const rows: string[][] = []
    const figures: Figure[] = []
    for (const clients of clientCounts) {
      const rates = await measureClients(under, clients, context)
      const none = rates['no notification']
      for (const way of ways) {
        const { median: middle, least, most } = spreadOf(rates[way])
        rows.push([
          `${clients} clients`,
          way,
          rounded(middle),
          rounded(least),
          rounded(most),
          rounded(medianRatio(rates[way], none)),
        ])
        figures.push({ name: `${clients} clients, ${way}`, value: middle, unit: 'commits/s' })
      }
      figures.push({
        name: `${clients} clients, wake-up of none`,
        value: medianRatio(rates['outbox.transaction'], none),
        unit: '',
        // Nothing measurable is asked for; the tolerance is what these machines do by themselves.
        target: { atLeast: 0.9, tolerance: 0.25 },
      })
    }
    listener.release(true)
    const table = {
      title: `Transactions of one event, median of ${context.repetitions}`,
      head: ['', 'way', 'commits/s', 'least', 'most', 'of none'],
      rows,
    }
    return { tables: [table], figures, environment: server.environment, broken: [] }
  },
}

async function measureClients(
  under: OutboxUnderTest,
  clients: number,
  { repetitions, seconds, say }: BenchmarkContext,
): Promise<Record<Way, number[]>> {
  const { pool, outbox } = under
  const event = { topic: 'orders', key: 'k', payload: Buffer.alloc(200, '{') }
  const plain = async (client: pg.PoolClient, notify: boolean): Promise<void> => {
    await client.query('begin')
    await outbox.enqueue(client, event)
    if (notify) await client.query("select pg_notify('bench', '')")
    await client.query('commit')
  }
  const transactions: Record<Way, (client: pg.PoolClient) => Promise<unknown>> = {
    'no notification': (client) => plain(client, false),
    'outbox.transaction': (client) => outbox.transaction(client, (tx) => outbox.enqueue(tx, event)),
    'NOTIFY in each transaction': (client) => plain(client, true),
  }
  const rates: Record<Way, number[]> = {
    'no notification': [],
    'outbox.transaction': [],
    'NOTIFY in each transaction': [],
  }
  const each = Math.min(seconds, mostSeconds)
  for (let repetition = 1; repetition <= repetitions; repetition++) {
    for (const way of ways) {
      const rate = await commitsPerSecond(pool, clients, each, transactions[way])
      rates[way].push(rate)
      say(`${clients} clients, ${way}: ${rounded(rate)} commits/s`)
    }
  }
  return rates
}

async function commitsPerSecond(
  pool: pg.Pool,
  clients: number,
  seconds: number,
  transaction: (client: pg.PoolClient) => Promise<unknown>,
): Promise<number> {
  const open = await Promise.all(Array.from({ length: clients }, () => pool.connect()))
  let commits = 0
  const began = performance.now()
  const end = began + seconds * 1000
  await Promise.all(
    open.map(async (client) => {
      while (performance.now() < end) {
        await transaction(client)
        commits += 1
      }
    }),
  )
  const rate = commits / ((performance.now() - began) / 1000)
  for (const client of open) client.release()
  return rate
}
