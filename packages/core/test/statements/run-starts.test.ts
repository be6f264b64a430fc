import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { insert, type OutboxDatabase, outboxDatabase, payloads } from '../support/outbox-database.ts'

let database: OutboxDatabase
beforeAll(async () => {
  database = await outboxDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())
beforeEach(() => database.pool.query('delete from outbox.events'))

describe('find', () => {
  it('reads a key from its first event in line, whichever of them arrived', async () => {
    await insert(database.pool, 'k', 'A')
    const before = await database.snapshot()
    await insert(database.pool, 'k', 'B')
    expect(payloads(await database.find(before))).toBe('AB')
  })

  it('brings nothing of a key whose first event waits for its retry, although only a later one arrived', async () => {
    await insert(database.pool, 'k', 'A')
    await database.pool.query("update outbox.events set attempts = 1, available_at = now() + interval '1 h'")
    const before = await database.snapshot()
    await insert(database.pool, 'k', 'B')
    expect(payloads(await database.find(before))).toBe('')
  })
})
