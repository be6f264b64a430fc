import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { createOutbox, fromPg } from '@inorder/core'
import pg from 'pg'
import { mixEvent } from '../stand/event-mix.ts'
import { liveWithParent, readOrders, tellParent } from '../stand/parent-channel.ts'
import { createRandom, type Random } from '../stand/random.ts'
import { book } from './business-rows.ts'
import { type FromWriter, type LedgerEvent, monotonicTime, type WriterOrders } from './ledger.ts'

// One writer process: several hands that write random transactions until the parent says stop. What a transaction holds
// is told before its COMMIT is sent, so that the parent knows of everything that can exist.

liveWithParent()
const orders = readOrders() as WriterOrders
const pool = new pg.Pool({
  connectionString: orders.databaseUrl,
  max: orders.hands + 1,
  application_name: orders.name,
  // A writer that waits for ever for a server that is gone would write nothing after the fault.
  connectionTimeoutMillis: 3000,
  query_timeout: 8000,
})
pool.on('error', () => undefined)
const client = fromPg(pool)
const outbox = createOutbox(orders.serializeWrites ? { client, serializeWrites: true } : { client })
let stopping = false
let transactions = 0

class ChangeOfMind extends Error {}

async function tell(news: FromWriter): Promise<void> {
  await tellParent(news)
}

async function writeTransaction(tx: string, random: Random): Promise<void> {
  await outbox.transaction(pool, async (session) => {
    const events: LedgerEvent[] = []
    const count = 1 + random.below(5)
    for (let left = count; left > 0; left--) {
      const inSavepoint = random.chance(0.1)
      if (inSavepoint) await session.query('savepoint part')
      const eventId = randomUUID()
      const { input, lane, delayed } = mixEvent(eventId, random, orders)
      const sentAt = monotonicTime()
      const { id } = await outbox.enqueue(session, input)
      const withdrawn = inSavepoint && random.chance(0.7)
      if (withdrawn) await session.query('rollback to part')
      events.push({ id, eventId, lane, delayed, deadly: false, sentAt, withdrawn })
    }
    // Transactions that stay open while others commit are what breaks readers that remember the last id.
    if (random.chance(0.2)) await delay(random.below(orders.openMs))
    if (random.chance(0.05)) {
      await tell({ kind: 'rolling-back', tx, events })
      throw new ChangeOfMind()
    }
    const kept = events.filter(({ withdrawn }) => !withdrawn).map(({ eventId }) => eventId)
    await book(session, tx, kept)
    await tell({ kind: 'committing', tx, events })
  })
  await tell({ kind: 'committed', tx, at: monotonicTime() })
}

async function work(hand: number): Promise<void> {
  const random = createRandom(orders.seed + hand)
  while (!stopping) {
    const tx = `${orders.name}/${++transactions}`
    try {
      await writeTransaction(tx, random)
    } catch (error) {
      if (!(error instanceof ChangeOfMind)) await tell({ kind: 'failed', tx, code: codeOf(error) })
    }
    await delay(random.below(orders.pauseMs))
  }
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}

process.on('message', () => {
  stopping = true
})
const hands = Array.from({ length: orders.hands }, (_, hand) => work(hand))
await tell({ kind: 'started' })
await Promise.all(hands)
// Connections to a server that is gone would end late or never; nothing is on its way on the others.
process.disconnect()
process.exit(0)
