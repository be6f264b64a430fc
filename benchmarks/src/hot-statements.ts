import { fromPg, type SqlConnection } from '@inorder/core'
import pg from 'pg'
import { compareLanes, firstLane, idAfter, lastLane, slotCount, slotOf } from '../../packages/core/src/contract/lane.ts'
import { findStatement, type LaneRows, readFound } from '../../packages/core/src/storage/find.ts'
import { type Names, namesOf } from '../../packages/core/src/storage/names.ts'
import { readSettled, settleStatement } from '../../packages/core/src/storage/settle.ts'
import { readSnapshot, snapshotStatement } from '../../packages/core/src/storage/snapshot.ts'
import { readSwept, sweepStatement } from '../../packages/core/src/storage/sweep.ts'

export const everySlot: readonly number[] = Array.from({ length: slotCount }, (_, slot) => slot)
const rowsOfALane = 100
const rowsInAll = 2000
const lanesOfASweep = 500

/** A session that runs the outbox's own statements, prepared as a relay prepares them. */
export interface OpenStatements extends AsyncDisposable {
  readonly session: SqlConnection
  readonly names: Names
}

export async function openStatements(url: string): Promise<OpenStatements> {
  const pool = new pg.Pool({ connectionString: url, max: 4 })
  pool.on('error', () => undefined)
  const session = await fromPg(pool).connect()
  return {
    session,
    names: namesOf('outbox'),
    async [Symbol.asyncDispose]() {
      await session.close()
      await pool.end()
    },
  }
}

/**
 * The relay's own statements and nothing else, back to back on one connection: sweep the slots, settle what they
 * brought, then go on with the lanes that had more. No publisher, no overlap.
 */
export async function drainByHotStatements(url: string): Promise<{ events: number; seconds: number }> {
  await using open = await openStatements(url)
  const { session, names } = open
  const [find, sweep, settle] = [findStatement(names), sweepStatement(names), settleStatement(names)]
  const lows = new Map<string, string>()
  let previous = readSnapshot((await session.run(snapshotStatement)).rows).snapshot
  let events = 0
  const began = performance.now()

  async function take(lanes: readonly LaneRows[]): Promise<void> {
    const entries = lanes.flatMap(({ rows }) =>
      rows.map(({ id, eventId, attempts, requeues }) => ({ id, eventId, attempts, requeues })),
    )
    for (const { lane, rows } of lanes) {
      const last = rows.at(-1)
      if (last === undefined) lows.delete(lane)
      else lows.set(lane, idAfter(last.id))
    }
    if (entries.length === 0) return
    const slots = [...new Set(lanes.map(({ lane }) => slotOf(lane)))].map((slot) => ({ slot, epoch: '1' }))
    const { rows } = await session.run(settle({ group: 'bench', owner: 'bench', slots, entries }))
    events += readSettled(rows).published.size
  }

  for (const slot of everySlot) {
    const to = lastLane(slot)
    let from = firstLane(slot)
    for (let full = true; full; ) {
      const { rows } = await session.run(sweep({ from, to, lanes: lanesOfASweep, rowsOfALane, topics: null, rows: rowsInAll }))
      const lanes = readSwept(rows)
      await take(lanes)
      full = lanes.length >= lanesOfASweep
      // A lane is a 64-bit number like an id, so the next one is found alike.
      if (full) from = idAfter(lanes.map(({ lane }) => lane).reduce((a, b) => (compareLanes(a, b) > 0 ? a : b)))
    }
  }
  // Settled, so these lanes are gone on with, as the relay does: a thousand at a time, until an answer frees them.
  while (lows.size > 0) {
    const lanes = [...lows.keys()].slice(0, 1000)
    const parameters = { previous, arrivals: 1000, slots: everySlot, topics: null, lanes, rowsOfALane, busy: [], rows: rowsInAll }
    const found = readFound((await session.run(find({ ...parameters, lows: lanes.map((lane) => lows.get(lane) ?? '0') }))).rows)
    previous = found.snapshot
    await take(found.lanes)
  }
  return { events, seconds: (performance.now() - began) / 1000 }
}
