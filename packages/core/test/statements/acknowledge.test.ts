import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { acknowledgeStatement } from '../../src/storage/acknowledge.ts'
import { readSettled, type SettleEntry, type Settled } from '../../src/storage/settle.ts'
import { everySlot, insert, type OutboxDatabase, outboxDatabase } from '../support/outbox-database.ts'

let database: OutboxDatabase
beforeAll(async () => {
  database = await outboxDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())
beforeEach(() => database.pool.query('delete from outbox.events'))

async function acknowledge(...entries: readonly SettleEntry[]): Promise<Settled> {
  const slots = everySlot.map((slot) => ({ slot, epoch: '1' }))
  const statement = acknowledgeStatement(database.names)({ group: 'g', owner: 'me', slots, entries })
  return readSettled((await database.session.run(statement)).rows)
}

async function entry(payload: string): Promise<SettleEntry> {
  const { id, eventId } = await insert(database.pool, 'k', payload)
  return { id, eventId, attempts: 0, requeues: 0 }
}

async function status(id: string): Promise<unknown> {
  const { rows } = await database.pool.query<{ status: string }>('select status from outbox.events where id = $1', [id])
  return rows[0]?.status
}

describe('an acknowledgement', () => {
  it('is written although nobody owns the slot any more, and every id is done with', async () => {
    const [first, second] = [await entry('A'), await entry('B')]
    const settled = await acknowledge(first, second)
    expect([...settled.published].sort()).toEqual([first.id, second.id].sort())
    expect([...settled.closed]).toEqual([first.id, second.id])
    expect(settled.owned.size).toBe(0)
  })

  it('writes nothing for an event of which somebody counted a failure since', async () => {
    const event = await entry('A')
    await database.pool.query("update outbox.events set attempts = 1, available_at = now() + interval '1 h'")
    expect((await acknowledge(event)).published.size).toBe(0)
    expect(await status(event.id)).toBe('pending')
  })

  it('writes nothing for an event that was put back in line since', async () => {
    const event = await entry('A')
    await database.pool.query('update outbox.events set requeues = 1')
    expect((await acknowledge(event)).published.size).toBe(0)
    expect(await status(event.id)).toBe('pending')
  })

  it('marks no other event that came back under the same id', async () => {
    const event = await entry('A')
    const { eventId } = await entry('B')
    expect((await acknowledge({ ...event, eventId })).published.size).toBe(0)
    expect(await status(event.id)).toBe('pending')
  })

  it('writes nothing for an event that has failed since', async () => {
    const event = await entry('A')
    await database.pool.query("update outbox.events set status = 'failed', failed_at = now()")
    expect((await acknowledge(event)).published.size).toBe(0)
    expect(await status(event.id)).toBe('failed')
  })
})
