import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Outbox, PgClient, PgPool } from '@inorder/core'
import type pg from 'pg'
import type { History } from './history.ts'
import { mixEvent } from '../../stand/event-mix.ts'
import type { Random } from '../../stand/random.ts'

export interface WriterOptions {
  readonly outbox: Outbox<PgClient, PgPool | PgClient>
  readonly pool: pg.Pool
  readonly history: History
  readonly random: Random
  readonly keys: number
  readonly stop: AbortSignal
}

/**
 * Writes random transactions until it is stopped: one to five events over a few keys, some scheduled, some in total
 * order or in none, some in savepoints that are rolled back, some left open for a while, some rolled back whole.
 */
export async function write({ outbox, pool, history, random, keys, stop }: WriterOptions): Promise<number> {
  const client = await pool.connect()
  let transactions = 0
  while (!stop.aborted) {
    const mine: string[] = []
    await client.query('begin')
    for (let left = 1 + random.below(5); left > 0; left--) {
      const inSavepoint = random.chance(0.1)
      if (inSavepoint) await client.query('savepoint part')
      const eventId = await writeOne()
      if (inSavepoint && random.chance(0.7)) {
        await client.query('rollback to part')
        history.rolledBack([eventId])
      } else mine.push(eventId)
    }
    // Transactions that stay open while others commit are what breaks readers that remember the last id.
    if (random.chance(0.2)) await delay(random.below(300))
    if (random.chance(0.05)) {
      await client.query('rollback')
      history.rolledBack(mine)
    } else {
      await client.query('commit')
      history.committed(mine)
      transactions += 1
      if (random.chance(0.5)) outbox.wake()
    }
    await delay(random.below(20))
  }
  client.release()
  return transactions

  async function writeOne(): Promise<string> {
    const eventId = randomUUID()
    const { input, lane, delayed } = mixEvent(eventId, random, { topics: 3, keys, total: 0.04, delayed: 0.1 })
    history.sending(eventId, lane, delayed)
    await outbox.enqueue(client, input)
    return eventId
  }
}
