import { setTimeout as delay } from 'node:timers/promises'
import { createOutbox, fromPg, type PgClient, type PgPool, type RelayOptions, type SqlClient } from '@inorder/core'
import pg from 'pg'
import { createHistory } from './history.ts'
import { createRandom } from '../../stand/random.ts'
import { type RelayUnderTest, relayUnderTest } from './relay-under-test.ts'
import { judge, type Verdict } from './verdict.ts'
import { write } from './writers.ts'

export interface CampaignOptions {
  readonly url: string
  readonly seconds: number
  readonly seed: number
  readonly writers?: number
  readonly relays?: number
  readonly keys?: number
  readonly relayOptions?: Partial<RelayOptions>
  /** Kills one relay in the middle. */
  readonly kill?: boolean
  /** Cuts a random connection of a relay every so many ms. */
  readonly cutEveryMs?: number
  /** Longest time after the last write until everything must be out. Default 20 s. */
  readonly quietMs?: number
  /** Takes the place of the relays' client, to show that the campaign notices a broken engine. */
  readonly alter?: (client: SqlClient<PgClient, PgPool | PgClient>) => SqlClient<PgClient, PgPool | PgClient>
}

export interface CampaignResult extends Verdict {
  readonly events: number
  readonly transactions: number
  readonly deliveries: number
  /** Events still in line or scheduled when the campaign gave up waiting. */
  readonly left: number
  readonly failed: number
  readonly requeued: number
}

/**
 * Writers, relays and every disturbance at once, for a while; then everything must come to rest, and the history is
 * judged. Held events are put back in line all the time, as an impatient operator would.
 */
export async function runCampaign(options: CampaignOptions): Promise<CampaignResult> {
  const {
    url,
    seconds,
    seed,
    writers = 10,
    relays = 2,
    keys = 12,
    relayOptions = {},
    kill = false,
    cutEveryMs = 0,
    quietMs = 20_000,
  } = options
  const pool = new pg.Pool({ connectionString: url, max: 60 })
  pool.on('error', () => undefined)
  const outbox = createOutbox({ client: fromPg(pool) })
  await outbox.migrate()
  const history = createHistory()
  const died = new Map<string, number>()
  const make = (name: string, number: number): RelayUnderTest =>
    relayUnderTest(
      name,
      pool,
      history,
      createRandom(seed + number),
      { rejected: 0.05, lostAcknowledgement: 0.03 },
      relayOptions,
      options.alter,
    )
  const running = Array.from({ length: relays }, (_, number) => make(`relay-${String(number)}`, number))
  await Promise.all(running.map(({ relay }) => relay.start()))

  const stop = new AbortController()
  const rest = new AbortController()
  const writing = Array.from({ length: writers }, (_, number) =>
    write({ outbox, pool, history, random: createRandom(seed + 100 + number), keys, stop: stop.signal }),
  )
  let requeued = 0
  const disturbances = [
    every(300, rest.signal, async () => {
      requeued += await requeueHeld(pool)
    }),
    every(200, stop.signal, () => lockSomeRows(pool)),
    ...(cutEveryMs > 0
      ? [every(cutEveryMs, stop.signal, () => cutOne(pool, running, createRandom(seed + history.next())))]
      : []),
  ]

  if (kill) {
    await delay(seconds * 500)
    const [victim] = running
    victim?.kill()
    if (victim !== undefined) died.set(victim.name, history.next())
    const successor = make('successor', 50)
    running.push(successor)
    await successor.relay.start()
    await delay(seconds * 500)
  } else await delay(seconds * 1000)
  stop.abort()
  const transactions = (await Promise.all(writing)).reduce((sum, count) => sum + count, 0)
  const left = await untilQuiet(pool, quietMs)
  rest.abort()
  await Promise.all(disturbances)
  await Promise.all(running.map((each) => each.stop()))
  const { rows } = await pool.query<{ event_id: string }>("select event_id from outbox.events where status = 'failed'")
  const failed = new Set(rows.map(({ event_id }) => event_id))
  await outbox.close()
  await pool.end()
  const verdict = judge(history, { failed, died })
  return {
    ...verdict,
    events: history.written.size,
    transactions,
    deliveries: history.deliveries.length,
    left,
    failed: failed.size,
    requeued,
  }
}

async function every(ms: number, until: AbortSignal, act: () => Promise<void>): Promise<void> {
  const waited = (): Promise<boolean> => delay(ms, true, { signal: until }).catch(() => false)
  while (await waited()) await act()
}

async function requeueHeld(pool: pg.Pool): Promise<number> {
  const { rowCount } = await pool.query(
    "update outbox.events set status = 'pending', attempts = 0, failed_at = null, requeues = requeues + 1, xid = pg_current_xact_id() where id = any(array(select id from outbox.events where status = 'held' order by id for update skip locked))",
  )
  return rowCount ?? 0
}

/** What an open psql of somebody does. */
async function lockSomeRows(pool: pg.Pool): Promise<void> {
  const client = await pool.connect()
  await client.query('begin')
  await client.query(
    "select 1 from outbox.events where id = any(array(select id from outbox.events where status = 'pending' order by id desc limit 3)) for update",
  )
  await delay(30)
  await client.query('commit')
  client.release()
}

async function cutOne(
  pool: pg.Pool,
  relays: readonly RelayUnderTest[],
  random: ReturnType<typeof createRandom>,
): Promise<void> {
  const backends = relays.flatMap((relay) => relay.backends())
  if (backends.length > 0) await pool.query('select pg_terminate_backend($1)', [random.pick(backends)])
}

async function untilQuiet(pool: pg.Pool, quietMs: number): Promise<number> {
  const deadline = performance.now() + quietMs
  for (;;) {
    const { rows } = await pool.query<{ left: string }>(
      "select count(*) as left from outbox.events where status in ('pending', 'scheduled', 'held')",
    )
    const left = Number(rows[0]?.left)
    if (left === 0 || performance.now() > deadline) return left
    await delay(100)
  }
}
