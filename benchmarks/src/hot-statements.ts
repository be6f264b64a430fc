import { fromPg, type Statement } from '@inorder/core'
import pg from 'pg'
import { firstLane, lastLane, slotCount, slotOf } from '../../packages/core/src/contract/lane.ts'
import { dueStatement } from '../../packages/core/src/storage/due.ts'
import {
  type FindParameters,
  type Found,
  findStatement,
  type LaneRows,
  readFound,
  type Snapshot,
} from '../../packages/core/src/storage/find.ts'
import { namesOf } from '../../packages/core/src/storage/names.ts'
import { readSettled, settleStatement } from '../../packages/core/src/storage/settle.ts'
import { readSnapshot, snapshotStatement } from '../../packages/core/src/storage/snapshot.ts'
import { readSwept, sweepStatement } from '../../packages/core/src/storage/sweep.ts'

// The only file of the benchmarks that looks inside core: it runs the hot statements one by one.

export type { LaneRows, Snapshot }
export type FindChanges = Partial<FindParameters> & { readonly previous: Snapshot }

export const everySlot: readonly number[] = Array.from({ length: slotCount }, (_, slot) => slot)
/** Lanes in one sweep, rows of a lane and rows in one answer: what a relay asks for with its defaults. */
export const sweepLanes = 500
const rowsOfALane = 1000
const rows = 2000

/** A session that runs the outbox's own statements, prepared as a relay prepares them. */
export interface HotStatements extends AsyncDisposable {
  snapshot(): Promise<Snapshot>
  find(changes: FindChanges): Promise<Found>
  due(): Promise<void>
  /** Sweeps one slot, or all of them as if they were one, from a lane on. */
  sweep(range: { readonly slot?: number | undefined; readonly from?: string | undefined }): Promise<LaneRows[]>
  /** Marks every row as acknowledged, and says how many were. */
  settle(lanes: readonly LaneRows[]): Promise<number>
  transaction(verb: 'begin' | 'rollback'): Promise<void>
}

export async function openHotStatements(url: string): Promise<HotStatements> {
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  pool.on('error', () => undefined)
  const session = await fromPg(pool).connect()
  const run = (statement: Statement): ReturnType<typeof session.run> => session.run(statement)
  const names = namesOf('outbox')
  const [find, due, sweep, settle] = [
    findStatement(names),
    dueStatement(names),
    sweepStatement(names),
    settleStatement(names),
  ]
  return {
    snapshot: async () => readSnapshot((await run(snapshotStatement)).rows).snapshot,
    async find(changes) {
      const usual = { arrivals: 1000, slots: everySlot, topics: null, lanes: [], lows: [], rowsOfALane, busy: [], rows }
      return readFound((await run(find({ ...usual, ...changes }))).rows)
    },
    async due() {
      await run(due())
    },
    async sweep({ slot, from }) {
      const to = lastLane(slot ?? slotCount - 1)
      const parameters = { from: from ?? firstLane(slot ?? 0), to, lanes: sweepLanes, rowsOfALane, topics: null, rows }
      return readSwept((await run(sweep(parameters))).rows)
    },
    async settle(lanes) {
      const slots = [...new Set(lanes.map(({ lane }) => slotOf(lane)))].map((slot) => ({ slot, epoch: '1' }))
      const entries = lanes.flatMap((lane) =>
        lane.rows.map(({ id, eventId, attempts, requeues }) => ({ id, eventId, attempts, requeues })),
      )
      return readSettled((await run(settle({ group: 'bench', owner: 'bench', slots, entries }))).rows).published.size
    },
    async transaction(verb) {
      await run({ text: verb, values: [] })
    },
    async [Symbol.asyncDispose]() {
      await session.close()
      await pool.end()
    },
  }
}

/** The number after this one: ids and lanes are 64-bit numbers that travel as text. */
export function following(number: string): string {
  return (BigInt(number) + 1n).toString()
}
