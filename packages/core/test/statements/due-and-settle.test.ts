import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { dueStatement } from '../../src/storage/due.ts'
import {
  readSettled,
  type SettleEntry,
  type SettleFailure,
  type Settled,
  settleStatement,
} from '../../src/storage/settle.ts'
import { everySlot, insert, type OutboxDatabase, outboxDatabase, payloads } from '../support/outbox-database.ts'

let database: OutboxDatabase
beforeAll(async () => {
  database = await outboxDatabase()
  await database.pool.query(
    "insert into outbox.slots (relay_group, slot, owner, epoch) select 'g', slot, 'me', 1 from generate_series(0, 255) slot",
  )
})
afterAll(() => database[Symbol.asyncDispose]())
beforeEach(() => database.pool.query('delete from outbox.events'))

const failure = (change: Partial<SettleFailure> = {}): SettleFailure => ({
  outcome: 'rejected',
  error: 'no',
  retryInMs: 1000,
  ...change,
})

async function settle(entries: readonly SettleEntry[], epoch = '1'): Promise<Settled> {
  const slots = everySlot.map((slot) => ({ slot, epoch }))
  return readSettled(
    (await database.session.run(settleStatement(database.names)({ group: 'g', owner: 'me', slots, entries }))).rows,
  )
}

async function entry(payload: string, change: Partial<SettleEntry> = {}): Promise<SettleEntry> {
  const { id, eventId } = await insert(database.pool, 'k', payload)
  return { id, eventId, attempts: 0, requeues: 0, ...change }
}

async function row(id: string): Promise<Record<string, unknown>> {
  const { rows } = await database.pool.query<Record<string, unknown>>(
    'select status, attempts, available_at, failed_at, last_error from outbox.events where id = $1',
    [id],
  )
  return rows[0] ?? {}
}

describe('due', () => {
  it('puts nothing in line before its time, and puts it in id order when its time has come', async () => {
    const first = await database.snapshot()
    await database.pool.query(
      "insert into outbox.events (topic, key, payload, status, available_at) values ('orders', 'k', 'S', 'scheduled', now() + interval '1 h'), ('orders', 'k', 'T', 'scheduled', now() + interval '2 h')",
    )
    await insert(database.pool, 'k', 'N')
    expect(payloads(await database.find(first))).toBe('N')
    const second = await database.snapshot()
    await database.pool.query("update outbox.events set available_at = clock_timestamp() where payload = 'S'")
    expect((await database.session.run(dueStatement(database.names)())).affected).toBe(1)
    expect(payloads(await database.find(second))).toBe('SN')
  })

  it('measures the readiness of a promoted event from the time it was scheduled for', async () => {
    await database.pool.query(
      "insert into outbox.events (topic, key, payload, status, available_at) values ('orders', 'k', 'S', 'scheduled', '2020-01-01T00:00:00Z')",
    )
    await database.session.run(dueStatement(database.names)())
    const { rows } = await database.pool.query<{ ready: Date }>('select ready_at ready from outbox.events')
    expect(rows[0]?.ready.toISOString()).toBe('2020-01-01T00:00:00.000Z')
  })

  it('leaves rows that somebody else has locked for a later call', async () => {
    await database.pool.query(
      "insert into outbox.events (topic, key, payload, status, available_at) select 'orders', n::text, 'S', 'scheduled', now() - interval '1 s' from generate_series(1, 3) n",
    )
    const locker = await database.connect()
    await locker.query('begin')
    await locker.query("select 1 from outbox.events where key = '2' for update")
    expect((await database.session.run(dueStatement(database.names)())).affected).toBe(2)
    await locker.query('rollback')
    locker.release()
    expect((await database.session.run(dueStatement(database.names)())).affected).toBe(1)
  })
})

describe('settle', () => {
  it('does not wait for a locked row and settles the rest', async () => {
    const [locked, free] = [await entry('A'), await entry('B')]
    const locker = await database.connect()
    await locker.query('begin')
    await locker.query('select 1 from outbox.events where id = $1 for update', [locked.id])
    const settled = await settle([locked, free])
    await locker.query('rollback')
    locker.release()
    expect([...settled.published]).toEqual([free.id])
    expect([...settled.closed]).toEqual([free.id])
  })

  it('counts no failure where the attempts are not as they were read', async () => {
    const event = await entry('A', { attempts: 1, failure: failure() })
    expect((await settle([event])).counted.size).toBe(0)
    expect(await row(event.id)).toMatchObject({ status: 'pending', attempts: 0, last_error: null })
  })

  it('counts no failure for a slot that is not owned under the same epoch', async () => {
    const event = await entry('A', { failure: failure() })
    const settled = await settle([event], '2')
    expect(settled.owned.size).toBe(0)
    expect(settled.counted.size).toBe(0)
    expect(await row(event.id)).toMatchObject({ status: 'pending', attempts: 0 })
  })

  it('records an acknowledgement whoever owns the slot now', async () => {
    const event = await entry('A')
    expect([...(await settle([event], '2')).published]).toEqual([event.id])
  })

  it('marks no other event that came back under the same id', async () => {
    const event = await entry('A')
    const settled = await settle([{ ...event, eventId: '00000000-0000-0000-0000-000000000000' }])
    expect(settled.published.size).toBe(0)
    expect([...settled.closed]).toEqual([event.id])
    expect(await row(event.id)).toMatchObject({ status: 'pending' })
  })

  it('counts a failure once, however often it is sent', async () => {
    const event = await entry('A', { failure: failure() })
    expect([...(await settle([event])).counted]).toEqual([event.id])
    expect((await settle([event])).counted.size).toBe(0)
    expect(await row(event.id)).toMatchObject({ status: 'pending', attempts: 1, last_error: 'no' })
  })

  it('ends an event as failed or held, with the time', async () => {
    const [failed, held] = [
      await entry('A', { failure: failure({ end: 'failed' }) }),
      await entry('B', { failure: failure({ end: 'held' }) }),
    ]
    await settle([failed, held])
    expect(await row(failed.id)).toMatchObject({ status: 'failed', attempts: 1, available_at: null })
    expect(await row(held.id)).toMatchObject({ status: 'held', attempts: 1, available_at: null })
    expect((await row(held.id))['failed_at']).toBeInstanceOf(Date)
  })

  it('keeps the last 20 failures of an event', async () => {
    const event = await entry('A')
    for (let attempts = 0; attempts < 25; attempts++) {
      await settle([{ ...event, attempts, failure: failure({ error: `try ${String(attempts + 1)}`, retryInMs: 0 }) }])
    }
    const { rows } = await database.pool.query<{ attempt: number; error: string }>(
      'select attempt, error from outbox.failures where event = $1 order by at',
      [event.id],
    )
    expect(rows.map(({ attempt }) => attempt)).toEqual(Array.from({ length: 20 }, (_, index) => index + 6))
    expect(rows.at(-1)?.error).toBe('try 25')
  })
})

describe('the table', () => {
  const refused = [
    ['an untried event in line that waits', "insert into outbox.events (topic, available_at) values ('o', now())"],
    ['a scheduled event without a time', "insert into outbox.events (topic, status) values ('o', 'scheduled')"],
    [
      'a published event that waits',
      "insert into outbox.events (topic, status, available_at) values ('o', 'published', now())",
    ],
    ['an empty topic', "insert into outbox.events (topic) values ('')"],
    ['a key of more than 1,024 bytes', "insert into outbox.events (topic, key) values ('o', repeat('k', 1025))"],
  ] as const
  it.each(refused)('refuses %s', async (_, sql) => {
    await expect(database.pool.query(sql)).rejects.toMatchObject({ code: '23514' })
  })
})
