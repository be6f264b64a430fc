import { setTimeout as delay } from 'node:timers/promises'
import { createOutbox, type Enqueued, type EventInput, fromPg } from '@inorder/core'
import pg from 'pg'
import { chance, pick } from './chance.ts'
import { placeHeader } from './faulty-publisher.ts'
import { book, lockKey } from './ledger.ts'
import type { FromWriter, WriterOrders } from './messages.ts'
import { liveWithParent, readOrders, tellParent } from './parent-channel.ts'

// One writer: transactions of 1 to 3 events of one key and one business row, until its share is committed.

liveWithParent()
const orders = readOrders() as WriterOrders
const { name, seed, keys } = orders
const pool = new pg.Pool({ connectionString: orders.databaseUrl, max: 8, application_name: name })
const outbox = createOutbox({ client: fromPg(pool) })
const client = await pool.connect()
const topics = ['orders', 'stock', 'billing'] as const

class ChangeOfMind extends Error {}

async function writeTransaction(number: number, left: number): Promise<number> {
  const at = (what: string): number => chance(seed, name, number, what)
  const account = pick(1, keys, at('key'))
  const key = `key-${account}`
  const events = Math.min(left, pick(1, 3, at('events')))
  await outbox.transaction(client, async () => {
    const before = await lockKey(client, key)
    const inputs = Array.from({ length: events }, (_, index): EventInput => {
      const position = before + index + 1
      return {
        topic: topics[account % topics.length] ?? 'orders',
        key,
        type: 'booking.made',
        headers: { [placeHeader]: `${key} ${position}` },
        payload: { key, position, writer: name },
      }
    })
    const enqueued: Enqueued[] = []
    // In one statement or in several: both are in order.
    if (at('calls') < 0.5) enqueued.push(...(await outbox.enqueue(client, inputs)))
    else for (const input of inputs) enqueued.push(await outbox.enqueue(client, input))
    // Some transactions stay open, so that ids become visible out of order across keys.
    if (at('open') < 0.3) await delay(pick(1, 30, at('how long')))
    if (at('rollback') < 0.05) throw new ChangeOfMind()
    await book(client, { writer: name, key, before, events: enqueued })
  })
  return events
}

let committed = 0
for (let number = 1; committed < orders.events; number++) {
  try {
    const events = await writeTransaction(number, orders.events - committed)
    committed += events
    await tellParent({ kind: 'committed', events } satisfies FromWriter)
  } catch (error) {
    if (!(error instanceof ChangeOfMind)) throw error
    await tellParent({ kind: 'rolled-back', events: 1 } satisfies FromWriter)
  }
}
client.release()
await outbox.close()
await pool.end()
process.disconnect()
process.exit(0)
