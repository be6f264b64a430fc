import type pg from 'pg'
import { fill, fillBlocked, fillScheduled } from './fill.ts'
import type { Snapshot } from './hot-statements.ts'
import type { Probe, Prober } from './probe.ts'

/** A state of the table in which the obvious query, or an unlucky plan, is slow. */
export interface Regime {
  readonly name: string
  /** Steps that fill the table one upon the other; each is measured. `rows` is the size of the whole benchmark. */
  readonly steps: readonly ((stage: Stage) => Promise<Step>)[]
}

export interface Stage {
  readonly client: pg.Client
  readonly rows: number
  readonly prober: Prober
  /** Another person's session, which ends with the regime. */
  other(): Promise<pg.Client>
}

export interface Step {
  readonly name: string
  readonly probes: readonly Probe[]
}

const findMs = 5
const dueMs = 5
const sweepMs = 15
const due: Probe = { name: 'due, nothing due', statement: 'due', target: dueMs }
const sweep: Probe = { name: 'sweep, 500 lanes', statement: 'sweep', target: sweepMs }

/** One event for each of so many keys that nobody has used. Returns the snapshot from before. */
async function newHeads({ client, prober }: Stage, heads: number, key = "'head-' || n"): Promise<Snapshot> {
  const previous = await prober.snapshot()
  await fill(client, { rows: heads, key })
  return previous
}

async function hotStep(stage: Stage, rows: number, name: string): Promise<Step> {
  const { client, prober } = stage
  await fill(client, { rows, key: "'hot'" })
  const { rows: found } = await client.query<{ lane: string; middle: string }>(
    "select lane, percentile_disc(0.5) within group (order by id) middle from outbox.events where key = 'hot' group by lane",
  )
  const [hot] = found
  if (hot === undefined) throw new Error('the hot key has no events')
  const previous = await newHeads(stage, 100, `'${name}-' || n`)
  const now = await prober.snapshot()
  return {
    name,
    probes: [
      { name: 'find, nothing new', statement: 'find', target: findMs, find: { previous: now } },
      { name: 'find, 100 new heads', statement: 'find', target: findMs, find: { previous } },
      {
        name: 'find goes on in the hot key, 100 rows',
        statement: 'find',
        target: findMs,
        find: { previous: now, lanes: [hot.lane], lows: [hot.middle], rowsOfALane: 100 },
      },
      {
        name: 'find goes on in the hot key, 1,000 rows',
        statement: 'find',
        find: { previous: now, lanes: [hot.lane], lows: [hot.middle] },
      },
      due,
      sweep,
    ],
  }
}

async function blockedStep(stage: Stage, from: number, keys: number, name: string): Promise<Step> {
  const { client, prober } = stage
  await fillBlocked(client, from, keys, 10)
  const blockedSince = await prober.snapshot()
  await fill(client, { rows: 1000, key: "'blocked-' || n" })
  const previous = await newHeads(stage, 100, `'${name}-' || n`)
  const wall = await prober.snapshot()
  return {
    name,
    probes: [
      { name: 'find, nothing new', statement: 'find', target: findMs, find: { previous: wall } },
      { name: 'find, 100 new heads', statement: 'find', target: findMs, find: { previous } },
      // The figure that this statement had when it was chosen.
      { name: 'find, 1,000 arrivals in blocked keys', statement: 'find', target: 15, find: { previous: blockedSince } },
      due,
      sweep,
    ],
  }
}

export const regimes: readonly Regime[] = [
  {
    name: 'hot',
    steps: [
      (stage) => hotStep(stage, stage.rows / 2, 'one hot key, half'),
      (stage) => hotStep(stage, stage.rows / 2, 'one hot key, all'),
    ],
  },
  {
    name: 'blocked',
    steps: [
      (stage) => blockedStep(stage, 0, stage.rows / 20, 'blocked keys, half'),
      (stage) => blockedStep(stage, stage.rows / 20, stage.rows / 20, 'blocked keys, all'),
    ],
  },
  {
    name: 'scheduled',
    steps: [
      async (stage) => {
        await fillScheduled(stage.client, stage.rows / 10, "'hot'")
        await fill(stage.client, {
          rows: 1,
          key: "'due'",
          columns: { status: "'scheduled'", available_at: "now() - interval '1 second'" },
        })
        const previous = await newHeads(stage, 100)
        return {
          name: 'scheduled before a due one',
          probes: [
            { name: 'find, 100 new heads', statement: 'find', target: findMs, find: { previous } },
            { ...due, name: 'due, one of them' },
            sweep,
          ],
        }
      },
    ],
  },
  {
    name: 'uncommitted',
    steps: [
      async (stage) => {
        const other = await stage.other()
        await other.query('begin')
        const older = await stage.prober.snapshot()
        await fill(other, { rows: stage.rows, key: "'other-' || n" })
        // Only once a later transaction has ended is the open one in the list of a snapshot. A relay's heartbeat does.
        await stage.client.query('select pg_current_xact_id()')
        const previous = await newHeads(stage, 100)
        return {
          name: "someone else's uncommitted rows",
          probes: [
            { name: 'find, 100 new heads', statement: 'find', target: findMs, find: { previous } },
            // A stated exception, once: the relay's last look was before that transaction began.
            { name: 'find, snapshot from before it', statement: 'find', find: { previous: older } },
            due,
            { ...sweep, name: 'sweep, one slot', slot: 128 },
          ],
        }
      },
    ],
  },
  {
    name: 'pinned',
    steps: [
      async (stage) => {
        await fill(stage.client, { rows: stage.rows, key: "'key-' || (n % 1000)" })
        const pin = await stage.other()
        await pin.query('begin isolation level repeatable read')
        await pin.query('select count(*) from outbox.settings')
        await stage.client.query("update outbox.events set status = 'published', published_at = clock_timestamp()")
        const sameSince = await newHeads(stage, 100, "'key-' || n")
        // After the others, so that a find since then meets these alone.
        const previous = await newHeads(stage, 100)
        return {
          name: 'published under a pinned snapshot',
          probes: [
            { name: 'find, 100 new heads', statement: 'find', target: findMs, find: { previous } },
            { name: 'find, 100 heads in those keys', statement: 'find', find: { previous: sameSince } },
            due,
            { name: 'sweep, one slot', statement: 'sweep', slot: 128 },
          ],
        }
      },
    ],
  },
]
