import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { createOutbox, fromPg } from '@inorder/core'
import { deadlyHeader } from '../../stand/faulty-publisher.ts'
import { book } from '../business-rows.ts'
import type { Campaign } from '../campaign-plan.ts'
import { monotonicTime } from '../ledger.ts'
import type { Stage } from '../stage.ts'
import { lasting } from '../tempo.ts'

/** How long it may take: five crashes, each of which somebody takes over after a lease, on a slow machine. */
const giveUpMs = 180_000

/** An event ends every process that publishes it. It has to be given up, and nothing else with it. */
export const crashEvent: Campaign = {
  name: 'crash-event',
  about: 'events that end the relay which publishes them, while a supervisor restarts relays',
  stage: { supervised: true, leaseMs: 1000 },
  async disturb(stage, until) {
    let number = 0
    do await survive(stage, ++number)
    while (await lasting(2000, until))
  },
  check: ({ states, transactions }) =>
    transactions
      .flatMap(({ events }) => events.filter(({ deadly }) => deadly))
      .flatMap(({ eventId }) => states.filter((state) => state.eventId === eventId))
      .filter(({ error }) => error?.includes('EVENT_CRASHED') !== true)
      .map(({ eventId, status, error }) => `${eventId} ended as ${status} with the cause ${error ?? 'none'}`),
}

async function survive(stage: Stage, number: number): Promise<void> {
  const { faults, say, db, troubles } = stage
  const over = faults.begin('deadly event')
  const eventId = await writeDeadly(stage, `deadly/${number}`)
  say(`${eventId} ends whoever publishes it`)
  const deadline = performance.now() + giveUpMs
  for (;;) {
    const { rows } = await db.query<{ status: string }>('select status from outbox.events where event_id = $1', [
      eventId,
    ])
    if (rows[0]?.status === 'failed') break
    if (performance.now() > deadline) {
      troubles.push(`${eventId} still ends relays after ${giveUpMs} ms`)
      break
    }
    await delay(50)
  }
  over()
}

/** In a lane that others write too: it has to go on without this event. */
async function writeDeadly({ db, writers }: Stage, tx: string): Promise<string> {
  await using outbox = createOutbox({ client: fromPg(db) })
  const eventId = randomUUID()
  const event = { topic: 'a', key: 'k0', eventId, payload: 'deadly', headers: { [deadlyHeader]: 'yes' } }
  await outbox.transaction(db, async (session) => {
    const sentAt = monotonicTime()
    const { id } = await outbox.enqueue(session, event)
    await book(session, tx, [eventId])
    const events = [{ id, eventId, lane: 'a/k0', delayed: false, withdrawn: false, deadly: true, sentAt }]
    writers.ledger.hear({ kind: 'committing', tx, events })
  })
  writers.ledger.hear({ kind: 'committed', tx, at: monotonicTime() })
  return eventId
}
