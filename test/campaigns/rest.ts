import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Look } from '../stand/messages.ts'
import { none } from './judge.ts'
import type { Stage } from './stage.ts'

/** How long relays may take to divide the slots again after the last fault: a lease and several renewals. */
const restTimeoutMs = 20_000
/** What a heap may grow by between a relay's first seconds and the end of a campaign: caches and compiled code. */
const growthBytes = 24 * 1024 * 1024

/**
 * Waits until everything that was written is published or given up, or nothing was for `standstillMs`: a backlog of one key
 * goes out one answer after another, and may take its time. Resolves with how many events are left.
 */
export async function untilPublished(db: pg.Pool, standstillMs: number, signal: AbortSignal): Promise<number> {
  let least = Infinity
  let deadline = 0
  for (;;) {
    const { rows } = await db.query<{ left: number }>(
      `select count(*)::int "left" from outbox.events where status not in ('published', 'failed')`,
    )
    const left = rows[0]?.left ?? 0
    if (left < least) deadline = performance.now() + standstillMs
    least = Math.min(least, left)
    if (left === 0 || performance.now() > deadline) return left
    await delay(50, undefined, { signal })
  }
}

/**
 * What is not as it has to be when nothing is left to do: a lane in flight, slots that are unevenly owned, a lock, a
 * transaction, a heap that has grown.
 */
export async function findUnrest(stage: Stage, firstHeaps: ReadonlyMap<string, number>): Promise<string[]> {
  const deadline = performance.now() + restTimeoutMs
  for (;;) {
    const looks = await stage.relays.look()
    const found = [
      ...unevenSlots(looks),
      ...none('relays with lanes in flight', named(looks, busy)),
      ...none('locks and transactions', await openLocks(stage.db)),
    ]
    if (found.length === 0 || performance.now() > deadline) return [...found, ...grown(looks, firstHeaps)]
    await delay(50)
  }
}

function busy({ lanes, events, leaseHolds }: Look): boolean {
  return lanes > 0 || events > 0 || !leaseHolds
}

function named(looks: ReadonlyMap<string, Look>, wrong: (look: Look) => boolean): string[] {
  return [...looks].filter(([, look]) => wrong(look)).map(([name, look]) => `${name} ${JSON.stringify(look)}`)
}

/** All 256 have an owner, and nobody has more than one above anybody else. */
function unevenSlots(looks: ReadonlyMap<string, Look>): string[] {
  const slots = [...looks.values()].map((look) => look.slots)
  if (slots.length === 0) return []
  const sum = slots.reduce((total, count) => total + count, 0)
  if (sum === 256 && Math.max(...slots) - Math.min(...slots) <= 1) return []
  return [`slots unevenly owned: ${[...looks].map(([name, look]) => `${name} ${look.slots}`).join(', ')}`]
}

async function openLocks(db: pg.Pool): Promise<string[]> {
  const { rows } = await db.query<{ found: string }>(
    `select 'advisory lock of ' || pid found from pg_locks where locktype = 'advisory'
union all select application_name || ' ' || state || ': ' || left(query, 60) from pg_stat_activity
where state like 'idle in transaction%' and pid <> pg_backend_pid()`,
  )
  return rows.map(({ found }) => found)
}

function grown(looks: ReadonlyMap<string, Look>, first: ReadonlyMap<string, number>): string[] {
  return none(
    'relays whose heap has grown',
    [...looks].flatMap(([name, { heap }]) => {
      const growth = heap - (first.get(name) ?? heap)
      return growth > growthBytes ? [`${name} by ${Math.round(growth / 1024 / 1024)} MiB`] : []
    }),
  )
}
