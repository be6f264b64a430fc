import { randomUUID } from 'node:crypto'
import { afterAll, describe, expect, it } from 'vitest'
import { inboxAccount } from '../support/inbox-account.ts'

const account = await inboxAccount()
const { pool, inbox } = account
afterAll(() => account[Symbol.asyncDispose]())

const consumer = 'billing'
const day = 24 * 3600 * 1000

describe('consumers store the event id for 7 days', () => {
  const age = async (eventId: string, days: number): Promise<void> => {
    await pool.query(
      `update outbox.processed_events set processed_at = now() - $2 * interval '1 day' where event_id = $1`,
      [eventId, days],
    )
  }

  it('and skip a duplicate before any side effect, on the seventh day too', async () => {
    const [eventId, before] = [randomUUID(), await account.balance()]
    await account.deposit(eventId)
    await age(eventId, 6.99)
    expect(await inbox.purge({ consumer })).toBe(0)
    expect(await account.deposit(eventId)).toEqual({ duplicate: true })
    expect(await account.balance()).toBe(before + 1)
  })

  it('and forget it then; the other consumers, with their own retention, do not', async () => {
    const [eventId, before] = [randomUUID(), await account.balance()]
    for (const by of ['billing', 'mail']) await account.deposit(eventId, { by })
    await age(eventId, 8)
    expect(await inbox.purge({ consumer: 'mail', retentionMs: 30 * day })).toBe(0)
    expect(await inbox.purge({ consumer: 'billing' })).toBe(1)
    expect(await account.noted(eventId)).toEqual(['mail'])
    expect(await account.deposit(eventId, { by: 'mail' })).toEqual({ duplicate: true })
    expect(await account.deposit(eventId, { by: 'billing' })).toEqual({ duplicate: false, result: 1 })
    expect(await account.balance()).toBe(before + 3)
  })

  it('in batches, however many there are, until the signal says no', async () => {
    await pool.query(
      `insert into outbox.processed_events select 'bulk', gen_random_uuid(), now() - interval '8 days' from generate_series(1, 25000)`,
    )
    const over = AbortSignal.abort()
    expect(await inbox.purge({ consumer: 'bulk', signal: over })).toBe(0)
    expect(await inbox.purge({ consumer: 'bulk' })).toBe(25_000)
    expect(await inbox.purge({ consumer: 'bulk' })).toBe(0)
  })
})
