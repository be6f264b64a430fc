import { createOutbox, fromPg } from '@inorder/core'
import {
  type PgBouncerServer,
  type PostgresServer,
  type RedisServer,
  startPgBouncer,
  startPostgres,
  startProxy,
  startRedis,
  type TcpProxy,
} from '@inorder/harness'
import pg from 'pg'
import { createRandom, type Random } from '../stand/random.ts'
import { memoryStandBroker, redisStandBroker, type StandBroker } from '../stand/stand-broker.ts'
import { createBusinessTables } from './business-rows.ts'
import { createDisposal, type Disposal } from './disposal.ts'
import { createFaultLog, type FaultLog, wallTime } from './faults.ts'
import { createRelays, type RelayCrew } from './relays.ts'
import type { StageOptions } from './stage-options.ts'
import { createWriters, type WriterCrew } from './writers.ts'

/** Servers, proxies and processes of one campaign, for its faults to act on. */
export interface Stage extends AsyncDisposable {
  readonly options: StageOptions
  readonly random: Random
  readonly say: (line: string) => void
  readonly faults: FaultLog
  readonly relays: RelayCrew
  readonly writers: WriterCrew
  readonly broker: StandBroker
  /** The server that is the primary now. */
  readonly postgres: PostgresServer
  /** Sessions with the primary that no fault is aimed at. */
  readonly db: pg.Pool
  readonly databaseProxy: TcpProxy | undefined
  readonly pooler: PgBouncerServer | undefined
  readonly redis: RedisServer | undefined
  readonly brokerProxy: TcpProxy | undefined
  readonly failovers: readonly Failover[]
  /** What should not have happened, as the campaign itself found. */
  readonly troubles: string[]
  /** This server is the primary from now on; what the old one got after `cutAt` is gone. The stage ends it too. */
  promoted(successor: PostgresServer, cutAt: bigint): void
}

/** What the old server acknowledged after `cutAt` is gone, and its successor took writes before `until`. */
export interface Failover {
  readonly cutAt: bigint
  /** Until then relays may act on what the old server told them: up to their next renewal, and what they began. */
  readonly until: bigint
}

const database = 'campaign'
/** Of every PostgreSQL of a campaign. A standby needs the WAL of the moment in which it was copied. */
export const serverSettings = { wal_keep_size: '256MB', max_connections: '300', track_commit_timestamp: 'on' } as const
/** So long the in-process broker has an event whose relay does not know it, as with a broker at the end of a network. */
const acknowledgeAfterMs = 15

/** Starts the servers and makes an empty outbox. No relay and no writer runs yet. */
export async function openStage(options: StageOptions, seed: number, say: (line: string) => void): Promise<Stage> {
  const open = createDisposal()
  try {
    return await build(options, seed, say, open)
  } catch (error) {
    await open.run()
    throw error
  }
}

async function build(options: StageOptions, seed: number, say: (line: string) => void, open: Disposal): Promise<Stage> {
  const faults = createFaultLog()
  const random = createRandom(seed)
  const first = open.use(await startPostgres({ settings: serverSettings }))
  await first.createDatabase(database)
  let postgres: PostgresServer = first
  let db = openPool(first, open)
  const databaseProxy = options.route === 'direct' ? undefined : open.use(await startProxy(first.port))
  const pooler =
    options.route === 'pooler' && databaseProxy !== undefined
      ? open.use(await startPgBouncer({ port: databaseProxy.port }))
      : undefined
  const port = pooler?.port ?? databaseProxy?.port ?? first.port
  const databaseUrl = `postgres://postgres@127.0.0.1:${port}/${database}`
  await migrate(databaseUrl, options)
  await createBusinessTables(db)

  const redis = options.broker === 'redis' ? open.use(await startRedis({ appendOnly: true })) : undefined
  const brokerProxy = redis !== undefined && options.brokerProxy ? open.use(await startProxy(redis.port)) : undefined
  const brokerUrl = brokerProxy === undefined ? redis?.url : `redis://127.0.0.1:${brokerProxy.port}`
  const broker = open.use(
    redis === undefined ? memoryStandBroker(acknowledgeAfterMs) : redisStandBroker(redis, brokerUrl),
  )

  const relays = createRelays(options, { databaseUrl, broker, seed, faults, say })
  open.defer(() => relays.end())
  const writers = createWriters(options, { databaseUrl, random, faults })
  open.defer(() => writers.end())
  const failovers: Failover[] = []

  return {
    options,
    random,
    say,
    faults,
    relays,
    writers,
    broker,
    databaseProxy,
    pooler,
    redis,
    brokerProxy,
    failovers,
    troubles: [],
    get postgres() {
      return postgres
    },
    get db() {
      return db
    },
    promoted(successor, cutAt) {
      const stale = options.leaseMs + options.publishTimeoutMs + 1000
      failovers.push({ cutAt, until: wallTime() + BigInt(stale) * 1000n })
      postgres = open.use(successor)
      db = openPool(postgres, open)
      databaseProxy?.retarget(postgres.port)
    },
    [Symbol.asyncDispose]: () => open.run(),
  }
}

/** From two places at once, as processes do that start together. */
async function migrate(connectionString: string, { serializeWrites }: StageOptions): Promise<void> {
  const pool = new pg.Pool({ connectionString, max: 2 })
  try {
    const client = fromPg(pool)
    const outbox = createOutbox(serializeWrites ? { client, serializeWrites } : { client })
    await Promise.all([outbox.migrate(), outbox.migrate()])
  } finally {
    await pool.end()
  }
}

function openPool(server: PostgresServer, open: Disposal): pg.Pool {
  const pool = new pg.Pool({ connectionString: server.url(database), max: 8, application_name: 'campaign' })
  pool.on('error', () => undefined)
  open.defer(() => pool.end())
  return pool
}
