import { slotOf } from '../../src/contract/lane.ts'
import { type Expectation, pages } from './gate.ts'
import { addHeads, fill, type PlanDatabase } from './plan-database.ts'
import type { HotStatement, Situation } from './statements.ts'

/** A state of the table that makes an unlucky plan expensive, and what each statement may cost in it. */
export interface Regime {
  readonly name: string
  fill(database: PlanDatabase): Promise<Situation>
  readonly expected: Readonly<Record<HotStatement, Expectation>>
}

const backlog = 20_000
const heads = 100
const slots = 256

/** What holds in every regime unless it says otherwise: 100 heads arrive, and the backlog costs nothing. */
const usual: Regime['expected'] = {
  // Each head: its arrival, one scan of its lane, its row again. Two more scans: the arrivals, and the next due time.
  find: {
    indexes: { e: 'arrival', x: 'lane', events: 'waiting' },
    buffers: pages({ scans: 2 + heads, rows: 2 * heads }),
  },
  due: { indexes: { events: 'waiting', e: 'events_pkey' }, buffers: pages({ scans: 1 }) },
  // Each head: one scan steps to its lane, another reads it.
  sweep: { indexes: { events: 'lane', e: 'lane', x: 'lane' }, buffers: pages({ scans: 2 * heads, rows: 2 * heads }) },
  // Each id is looked up to lock its row and again to write it.
  settle: {
    indexes: { e: 'events_pkey' },
    buffers: pages({ scans: 2 * heads, written: heads }),
  },
  load: { indexes: { events: 'events_pkey' }, buffers: pages({ scans: heads, rows: heads }) },
  insert: { indexes: {}, buffers: pages({ written: heads }) },
}

export const hotKey: Regime = {
  name: 'one hot key',
  async fill(database) {
    const { outbox } = database
    await fill(outbox.pool, backlog, "'hot'")
    const { rows } = await outbox.pool.query<{ lane: string; low: string }>(
      `select lane, (min(id) + ${backlog / 2})::text low from outbox.events where key = 'hot' group by lane`,
    )
    return { ...(await addHeads(database)), continued: rows }
  },
  expected: {
    ...usual,
    // It also goes on with the hot key in its middle, and gets what is its share of 2,000 rows.
    find: { ...usual.find, buffers: pages({ scans: 3 + heads, rows: 2 * heads + 100 }) },
    sweep: { ...usual.sweep, buffers: pages({ scans: 2 * heads + 2, rows: 2 * heads + 100 }) },
  },
}

export const blockedKeys: Regime = {
  name: 'blocked keys',
  async fill(database) {
    await fill(database.outbox.pool, backlog, "'blocked-' || (n - 1) / 10", {
      attempts: '(n % 10 = 1)::int',
      available_at: "case when n % 10 = 1 then now() + interval '1 day' end",
    })
    return { ...(await addHeads(database)), continued: [] }
  },
  // A slice of 500 lanes, nearly all of them blocked: their first row is looked at, and none is read.
  expected: { ...usual, sweep: { ...usual.sweep, buffers: pages({ scans: 2 * 500, rows: 500 + 2 * heads }) } },
}

const mostlyScheduled: Regime = {
  name: 'mostly scheduled',
  async fill(database) {
    const { pool } = database.outbox
    const scheduled = (at: string): Record<string, string> => ({ status: "'scheduled'", available_at: at })
    await fill(pool, backlog, "'hot'", scheduled("now() + interval '1 day'"))
    await fill(pool, heads, "'due-' || n", scheduled("now() - interval '1 second'"))
    return { ...(await addHeads(database)), continued: [] }
  },
  expected: {
    ...usual,
    due: { ...usual.due, buffers: pages({ scans: 1 + heads, rows: heads, written: heads }) },
  },
}

const uncommitted: Regime = {
  name: "someone else's uncommitted rows",
  async fill(database) {
    const other = await database.other()
    await other.query('begin')
    await fill(other, backlog, "'other-' || n")
    // Only once a later transaction has ended is the open one in the list of a snapshot. A relay's own heartbeat does.
    await database.outbox.pool.query('select pg_current_xact_id()')
    const situation = await addHeads(database)
    return { ...situation, continued: [], swept: slotOf(situation.heads[0]?.lane ?? '0') }
  },
  expected: {
    ...usual,
    // A sweep passes the rows of its slot that nobody may see yet; everything else does not meet them.
    sweep: { ...usual.sweep, buffers: pages({ scans: 20, rows: 20, dead: (2 * backlog) / slots }) },
  },
}

export const pinned: Regime = {
  name: 'published under a pinned snapshot',
  async fill(database) {
    const { pool } = database.outbox
    await fill(pool, backlog, "'key-' || n % 1000")
    const pin = await database.other()
    await pin.query('begin isolation level repeatable read')
    await pin.query('select from outbox.settings')
    await pool.query(
      "update outbox.events set status = 'published', published_at = clock_timestamp() where status = 'pending'",
    )
    const situation = await addHeads(database)
    return { ...situation, continued: [], swept: slotOf(situation.heads[0]?.lane ?? '0') }
  },
  expected: {
    ...usual,
    // A sweep passes the dead rows of its slot while the snapshot pins them.
    sweep: { ...usual.sweep, buffers: pages({ scans: 20, rows: 20, dead: (2 * backlog) / slots }) },
  },
}

export const regimes: readonly Regime[] = [hotKey, blockedKeys, mostlyScheduled, uncommitted, pinned]
