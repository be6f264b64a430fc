import { randomUUID } from 'node:crypto'
import { firstLane, lastLane, slotCount } from '../../src/contract/lane.ts'
import type { Statement } from '../../src/contract/sql-client.ts'
import { dueStatement } from '../../src/storage/due.ts'
import { findStatement, type Snapshot } from '../../src/storage/find.ts'
import { insertEventsStatement } from '../../src/storage/insert-events.ts'
import { loadPayloadsStatement } from '../../src/storage/load-payloads.ts'
import { namesOf } from '../../src/storage/names.ts'
import { settleStatement } from '../../src/storage/settle.ts'
import { sweepStatement } from '../../src/storage/sweep.ts'
import { everySlot } from '../support/outbox-database.ts'

/** Where a regime left the table, so that the statements have something to look for. */
export interface Situation {
  /** The snapshot from before the heads were committed. */
  readonly previous: Snapshot
  /** The heads: one event each in keys of their own. */
  readonly heads: readonly { readonly id: string; readonly eventId: string; readonly lane: string }[]
  /** Lanes to go on with, and from where. */
  readonly continued: readonly { readonly lane: string; readonly low: string }[]
  /** The range that a sweep goes through: all lanes, or one slot. */
  readonly swept?: number
}

export const empty: Situation = { previous: { xmax: '3', inProgress: [] }, heads: [], continued: [] }

const names = namesOf('outbox')
const [find, due, sweep, settle, load] = [
  findStatement(names),
  dueStatement(names),
  sweepStatement(names),
  settleStatement(names),
  loadPayloadsStatement(names),
]

export type HotStatement = 'find' | 'due' | 'sweep' | 'settle' | 'load' | 'insert'
export const hotStatements: readonly HotStatement[] = ['find', 'due', 'sweep', 'settle', 'load', 'insert']

/** Each hot statement with the parameters of a relay in that situation. */
export function statementsFor({ previous, heads, continued, swept }: Situation): Record<HotStatement, Statement> {
  return {
    find: find({
      previous,
      arrivals: 1000,
      slots: everySlot,
      topics: null,
      lanes: continued.map(({ lane }) => lane),
      lows: continued.map(({ low }) => low),
      rowsOfALane: 1000,
      busy: [],
      rows: 2000,
    }),
    due: due(),
    sweep: sweep({
      from: firstLane(swept ?? 0),
      to: lastLane(swept ?? slotCount - 1),
      lanes: 500,
      rowsOfALane: 1000,
      topics: null,
      rows: 2000,
    }),
    settle: settle({
      group: 'default',
      owner: 'relay',
      slots: [{ slot: 1, epoch: '1' }],
      entries: heads.map(({ id, eventId }, index) => ({
        id,
        eventId,
        attempts: 0,
        requeues: 0,
        ...(index % 10 === 0 ? { failure: { outcome: 'rejected', error: 'no', retryInMs: 1000 } } : {}),
      })),
    }),
    load: load(heads.map(({ id }) => id)),
    insert: insertEventsStatement(
      names,
      Array.from({ length: 100 }, (_, number) => ({
        eventId: randomUUID(),
        chosenId: true,
        topic: 'orders',
        key: `new-${number}`,
        type: null,
        payload: Buffer.from('{}'),
        contentType: 'application/json',
        headers: '{}',
        ordering: null,
        delayMs: null,
        availableAt: null,
      })),
    ),
  }
}
