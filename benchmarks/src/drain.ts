import { startRedis } from '@inorder/harness'
import { memoryBroker, memoryPublisher } from '@inorder/relay-memory'
import { redisStreamsPublisher } from '@inorder/relay-redis-streams'
import { Redis } from 'ioredis'
import { appendBarely } from './bare-redis.ts'
import { type Benchmark, type BenchmarkContext, wanted } from './benchmark.ts'
import { drainByRelay } from './drain-relay.ts'
import type { Figure } from './figure.ts'
import { rounded } from './figure.ts'
import { fill } from './fill.ts'
import { drainByHotStatements } from './drain-statements.ts'
import { drainPlainly } from './plain-statements.ts'
import { type BenchmarkServer, startBenchmarkServer } from './server.ts'
import { median, medianRatio, spreadOf } from './statistics.ts'

const payloadBytes = 200
/** Events that a relay has in flight to one destination by default; the bare client gets the same. */
const inFlight = 2500

const loads = [
  { name: 'distinct', key: "'key-' || n" },
  { name: 'keys-1000', key: "'key-' || (n % 1000)" },
  { name: 'one-key', key: "'hot'" },
]

const ways = ['plain statements', 'hot statements', 'relay', 'relay, redis', 'bare ioredis'] as const
type Way = (typeof ways)[number]

export const drain: Benchmark = {
  name: 'drain',
  about: 'a preloaded backlog: a relay against the plain statements, and into Redis against bare ioredis',
  async run(context) {
    await using server = await startBenchmarkServer()
    await using redis = await startRedis()
    const events = context.rows ?? 50_000
    const figures: Figure[] = []
    const broken: string[] = []
    const rows: string[][] = []
    for (const load of loads.filter(({ name }) => wanted(context.only, name))) {
      const rates = await measureLoad({
        server,
        redisUrl: redis.url,
        events,
        key: load.key,
        name: load.name,
        context,
        broken,
      })
      rows.push(...tableRows(load.name, rates))
      figures.push(...figuresOf(load.name, rates))
    }
    const table = {
      title: `Drain of ${rounded(events)} events of ${payloadBytes} bytes, events/s, median of ${context.repetitions}`,
      head: ['load', 'way', 'events/s', 'least', 'most', 'of plain'],
      rows,
    }
    return {
      tables: [table],
      figures,
      environment: { ...server.environment, redis: await redisVersion(redis.url) },
      broken,
    }
  },
}

type Rates = Record<Way, number[]>

interface Load {
  readonly server: BenchmarkServer
  readonly redisUrl: string
  readonly events: number
  readonly name: string
  readonly key: string
  readonly context: BenchmarkContext
  readonly broken: string[]
}

/** Every way once, then every way again: what the machine does meanwhile falls on all of them. */
async function measureLoad(load: Load): Promise<Rates> {
  const { server, events, context } = load
  const template = await preload(load)
  const rates = Object.fromEntries(ways.map((way) => [way, [] as number[]])) as Rates
  let runs: readonly number[] = []
  for (let repetition = 1; repetition <= context.repetitions; repetition++) {
    for (const way of ways) {
      if (way === 'bare ioredis') {
        await flush(load.redisUrl)
        const bare = await appendBarely(load.redisUrl, 'bare', runs, { payloadBytes, inFlight })
        rates[way].push(bare.events / bare.seconds)
      } else {
        const url = await server.copy(template)
        const measured = await measureWay(way, url, load)
        if (measured.runs !== undefined && way === 'relay, redis') runs = measured.runs
        rates[way].push(events / measured.seconds)
        await server.drop(url)
      }
      context.say(
        `${load.name} ${repetition}/${context.repetitions} ${way}: ${rounded(rates[way].at(-1) ?? 0)} events/s`,
      )
    }
  }
  await server.drop(template)
  return rates
}

async function preload({ server, events, key, name, context }: Load): Promise<string> {
  context.say(`${name}: preloading ${rounded(events)} events`)
  const { url } = await (async () => {
    await using under = await server.outbox()
    await fill(under.pool, { rows: events, key, payloadBytes })
    await under.pool.query('vacuum (analyze) outbox.events')
    return under
  })()
  return url
}

async function measureWay(
  way: Exclude<Way, 'bare ioredis'>,
  url: string,
  load: Load,
): Promise<{ seconds: number; runs?: readonly number[] }> {
  const { events, broken, context } = load
  const check = (what: string, got: number, expected: number): void => {
    if (got !== expected) broken.push(`${load.name}, ${way}: ${what} ${got}, expected ${expected}`)
  }
  if (way === 'plain statements' || way === 'hot statements') {
    const result = await (way === 'plain statements' ? drainPlainly(url) : drainByHotStatements(url))
    check('events', result.events, events)
    return result
  }
  const broker = memoryBroker({ recording: 'count' })
  if (way === 'relay, redis') await flush(load.redisUrl)
  const publisher = way === 'relay' ? memoryPublisher(broker) : redisStreamsPublisher({ connection: load.redisUrl })
  const result = await drainByRelay(url, publisher)
  check('published', result.events, events)
  check('lost', result.left, 0)
  check('delivered', way === 'relay' ? broker.count : await streamLength(load.redisUrl), events)
  const calls = result.runs.length
  context.say(
    `  started in ${rounded(result.startSeconds * 1000)} ms, ${result.finds} finds, ${result.settles} settles, ${calls} runs, relay CPU ${rounded(result.cpuSeconds)} of ${rounded(result.seconds)} s`,
  )
  return result
}

function figuresOf(load: string, rates: Rates): Figure[] {
  const plain = rates['plain statements']
  const ceiling = plain.map((rate, repetition) => Math.min(rate, rates['bare ioredis'][repetition] ?? rate))
  return [
    ...ways.map((way): Figure => ({ name: `${load} ${way}`, value: median(rates[way]), unit: 'events/s' })),
    {
      name: `${load} relay of plain statements`,
      value: medianRatio(rates.relay, plain),
      unit: '',
      target: { atLeast: 0.8, tolerance: 0.1 },
    },
    { name: `${load} relay of hot statements`, value: medianRatio(rates.relay, rates['hot statements']), unit: '' },
    {
      name: `${load} relay into redis of the smaller ceiling`,
      value: medianRatio(rates['relay, redis'], ceiling),
      unit: '',
      target: { atLeast: 0.6, tolerance: 0.1 },
    },
  ]
}

function tableRows(load: string, rates: Rates): string[][] {
  return ways.map((way) => {
    const { median: middle, least, most } = spreadOf(rates[way])
    const ofPlain = medianRatio(rates[way], rates['plain statements'])
    return [load, way, rounded(middle), rounded(least), rounded(most), rounded(ofPlain)]
  })
}

async function flush(url: string): Promise<void> {
  await withRedis(url, (redis) => redis.flushall())
}

function streamLength(url: string): Promise<number> {
  return withRedis(url, (redis) => redis.xlen('orders'))
}

function redisVersion(url: string): Promise<string> {
  return withRedis(url, async (redis) => /redis_version:(\S+)/.exec(await redis.info('server'))?.[1] ?? 'unknown')
}

async function withRedis<T>(url: string, use: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url)
  try {
    return await use(redis)
  } finally {
    redis.disconnect()
  }
}
