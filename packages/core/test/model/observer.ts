import type { RowSet, SqlConnection, Statement } from '../../src/contract/sql-client.ts'
import { slotOf } from '../../src/contract/lane.ts'
import { purposeOf } from '../support/around-statements.ts'
import type { Broker, Told } from './broker.ts'
import { explain, type Known, type Model, type Runs } from './model.ts'
import type { Observe } from './wire.ts'

/** Who owned a slot at some moment; another object after every change. */
export interface SlotOwner {
  readonly owner: string
  readonly epoch: string
}

/** What all relays share: the model, the broker, and who owns which slot. */
export interface Scene {
  readonly model: Model
  readonly broker: Broker
  /** A session of the test's own. */
  readonly session: SqlConnection
  readonly slots: Map<number, SlotOwner>
  /** The number of each lane in the database. */
  readonly laneIds: Map<string, string>
  readonly crashes: () => number
  readonly violation: (what: string) => void
  /** A relay sent something that may have changed a table. */
  readonly changed: () => void
}

/** One relay process, as far as its statements go. */
export interface Observed {
  readonly name: string
  /** Id under which it is registered now. */
  readonly registered: () => string
  /** What each event was when the relay read it last. */
  readonly read: Map<Known, Reading>
}

export interface Reading {
  /** What could be delivered then. */
  readonly runs: Runs
  /** How often the event had been moved by then. */
  readonly moves: number
}

/** What changes no table but the lease of its own relay. */
const reading = new Set(['find', 'sweep', 'heartbeat', 'select'])

/** Position of the event's id in a row of find and of sweep. */
const idColumn = { find: 6, sweep: 2 }

/**
 * Keeps the model in step with what one relay does in the database, and checks that it may. The statements of all relays
 * run one at a time, so the model is at each of them what the database is.
 */
export function observeRelay(scene: Scene, relay: Observed): Observe {
  const { model, broker, session, slots, violation } = scene

  return async (statement, run) => {
    const purpose = purposeOf(statement)
    if (!reading.has(purpose)) scene.changed()
    if (purpose === 'find' || purpose === 'sweep') {
      const runs = model.runs()
      const answer = await run()
      for (const row of answer.rows) {
        const event = model.events.find(({ id }) => String(id) === row[idColumn[purpose]])
        if (event !== undefined) relay.read.set(event, { runs, moves: event.moves })
      }
      return answer
    }
    if (purpose === 'due') {
      const answer = await run()
      const due = model.promote()
      if (answer.affected !== due) violation(`${answer.affected} events are put in line, and ${due} are due`)
      return answer
    }
    if (purpose === 'settle' || purpose === 'acknowledge') return settle(statement, run)
    const answer = await run()
    if (/\.slots\b/.test(statement.text) && !/heartbeat/.test(statement.name ?? '')) await readSlots()
    return answer
  }

  async function settle(statement: Statement, run: () => Promise<RowSet>): Promise<RowSet> {
    const answer = await run()
    for (const entry of entriesOf(statement)) {
      const event = model.events.find(({ eventId }) => eventId === entry.eventId)
      if (event === undefined) violation(`relay ${relay.name} settles an event that nobody wrote`)
      else if (entry.outcome === null) acknowledge(event, entry)
      else fail(event, entry, entry.outcome)
    }
    return answer
  }

  function acknowledge(event: Known, { requeues, attempts }: Entry): void {
    const told = broker.told.filter(
      (each) => each.relay === relay.name && each.event === event && each.kind === 'acknowledged',
    )
    if (!told.some((each) => each.requeues === requeues))
      violation(`relay ${relay.name} settles event ${event.number} as acknowledged, and no broker said so`)
    for (const each of told) each.settled = true
    if (event.status === 'pending' && event.requeues === requeues && event.attempts === attempts)
      model.acknowledged(event)
  }

  function fail(event: Known, { requeues, attempts }: Entry, outcome: string): void {
    const told = broker.told.findLast(
      (each) =>
        each.relay === relay.name && each.event === event && each.requeues === requeues && each.attempts === attempts,
    )
    if (told === undefined ? !mayHaveCrashed(outcome) : told.kind !== outcome)
      violation(
        `relay ${relay.name} counts a failure of event ${event.number} as ${outcome}, and was told ${told?.kind ?? 'nothing'}`,
      )
    if (told?.kind === 'unknown' && !told.answering)
      violation(
        `relay ${relay.name} counts an unknown outcome of event ${event.number}, and its destination answered nobody since`,
      )
    if (told !== undefined) told.settled = true
    const expected = event.status === 'pending' && event.requeues === requeues && event.attempts === attempts
    if (expected && owned(event, told)) model.counted(event, outcome)
  }

  /** An event that was being published in three crashes is given up without asking the broker. */
  function mayHaveCrashed(outcome: string): boolean {
    return outcome === 'permanent' && scene.crashes() >= 3
  }

  function owned(event: Known, told: Told | undefined): boolean {
    const now = slots.get(slotOf(scene.laneIds.get(event.lane) ?? '0'))
    return now?.owner === relay.registered() && (told === undefined || told.run.owner === now)
  }

  async function readSlots(): Promise<void> {
    for (const [owner, epoch, list] of (await session.run(slotOwners)).rows as [string | null, string, string][]) {
      for (const slot of list.slice(1, -1).split(',').map(Number)) {
        const before = slots.get(slot)
        if (before?.owner === owner && before.epoch === epoch) continue
        if (owner === null) slots.delete(slot)
        else slots.set(slot, { owner, epoch })
        if (before !== undefined)
          explain(model.events.filter(({ lane }) => slotOf(scene.laneIds.get(lane) ?? '0') === slot))
      }
    }
  }
}

/** One row for each owner and epoch instead of 256. */
const slotOwners: Statement = {
  name: 'model_owners',
  text: 'select owner, epoch, array_agg(slot) from outbox.slots group by owner, epoch',
  values: [],
}

interface Entry {
  readonly eventId: string
  readonly attempts: number
  readonly requeues: number
  /** Null is acknowledged. */
  readonly outcome: string | null
}

function entriesOf({ values, ...statement }: Statement): Entry[] {
  const plain = purposeOf({ values, ...statement }) === 'acknowledge'
  const [eventIds, ...columns] = values.slice(5) as [string[], ...(readonly (number | string | null)[])[]]
  const [attempts, requeues] = plain ? [columns[1], columns[0]] : [columns[0], columns[1]]
  return eventIds.map((eventId, index) => ({
    eventId,
    attempts: Number(attempts?.[index]),
    requeues: Number(requeues?.[index]),
    outcome: plain ? null : (columns[5]?.[index] as string | null),
  }))
}
