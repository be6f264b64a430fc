import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { RowSet, Statement } from '../../src/contract/sql-client.ts'
import { acknowledgeStatement } from '../../src/storage/acknowledge.ts'
import { dueStatement } from '../../src/storage/due.ts'
import { type SettleEntry, readSettled, settleStatement } from '../../src/storage/settle.ts'
import { everySlot, insert, type OutboxDatabase, outboxDatabase } from '../support/outbox-database.ts'

let database: OutboxDatabase
beforeAll(async () => {
  database = await outboxDatabase()
  // A statement that waits for a lock ends all the same, and says so.
  await database.session.run({ text: "set statement_timeout = '5s'", values: [] })
})
afterAll(() => database[Symbol.asyncDispose]())
beforeEach(() => database.pool.query('delete from outbox.events'))

/** Runs a statement while somebody has the row with this payload locked. */
async function besideLock(payload: string, statement: Statement): Promise<RowSet | { readonly code: string }> {
  const person = await database.connect()
  await person.query('begin')
  await person.query('select 1 from outbox.events where payload = $1 for update', [Buffer.from(payload)])
  const outcome = await database.session.run(statement).catch((error: unknown) => error as { readonly code: string })
  await person.query('rollback')
  person.release()
  return outcome
}

async function acknowledged(payload: string): Promise<SettleEntry> {
  const { id, eventId } = await insert(database.pool, payload, payload)
  return { id, eventId, attempts: 0, requeues: 0 }
}

const batch = { group: 'g', owner: 'me', slots: everySlot.map((slot) => ({ slot, epoch: '1' })) }

async function pending(): Promise<string[]> {
  const { rows } = await database.pool.query<{ payload: Buffer }>(
    "select payload from outbox.events where status = 'pending' and available_at is null order by id",
  )
  return rows.map(({ payload }) => payload.toString())
}

describe('a row that somebody has locked', () => {
  it('is passed over by due', async () => {
    await database.pool.query(
      `insert into outbox.events (topic, key, payload, status, available_at)
       select 'orders', n, n::bytea, 'scheduled', now() - interval '1 s' from unnest(array['A', 'B', 'C']) n`,
    )
    expect(await besideLock('B', dueStatement(database.names)())).toMatchObject({ affected: 2 })
    expect(await pending()).toEqual(['A', 'C'])
  })

  it('is passed over by settle', async () => {
    const [locked, free] = [await acknowledged('A'), await acknowledged('B')]
    const entries = [locked, free]
    const outcome = await besideLock('A', settleStatement(database.names)({ ...batch, entries }))
    expect('rows' in outcome ? [...readSettled(outcome.rows).published] : outcome.code).toEqual([free.id])
    expect(await pending()).toEqual(['A'])
  })

  it('ends an acknowledgement soon, which has written nothing', async () => {
    const entries = [await acknowledged('A'), await acknowledged('B')]
    const statement = acknowledgeStatement(database.names)({ ...batch, entries })
    expect(await besideLock('A', statement)).toMatchObject({ code: '55P03' })
    expect(await pending()).toEqual(['A', 'B'])
  })
})
