import { randomUUID } from 'node:crypto'
import { freshDatabase } from '@inorder/harness'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fromPg, type PgClient } from '../../src/clients/from-pg.ts'
import { createInbox, type Processed } from '../../src/consume/inbox.ts'
import { gate } from '../support/gate.ts'

const pool = new pg.Pool({ connectionString: await freshDatabase(), max: 30 })
pool.on('error', () => undefined)
pool.on('connect', (client) => client.on('error', () => undefined))
const inbox = createInbox({ client: fromPg(pool) })
const day = 24 * 3600 * 1000

beforeAll(async () => {
  await inbox.migrate()
  await pool.query('create table account (balance int); insert into account values (0)')
})
afterAll(() => pool.end())

const consumer = 'billing'
const balance = async (): Promise<number> =>
  (await pool.query<{ balance: number }>('select balance from account')).rows[0]?.balance ?? NaN
const noted = async (eventId: string): Promise<string[]> =>
  (
    await pool.query<{ consumer: string }>(
      'select consumer from outbox.processed_events where event_id = $1 order by 1',
      [eventId],
    )
  ).rows.map((row) => row.consumer)

/** Resolves when so many sessions of this database wait for the end of another transaction. */
async function waiting(sessions: number): Promise<void> {
  const look = async (): Promise<number | null> =>
    (
      await pool.query(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event = 'transactionid'`,
      )
    ).rowCount
  await expect.poll(look, { timeout: 20_000 }).toBe(sessions)
}

/** Adds one to the balance in a transaction of its own, once per event. */
async function deposit(
  eventId: string,
  { level = 'read committed', by = consumer, then = async (_: PgClient): Promise<void> => undefined } = {},
): Promise<Processed<number>> {
  const client = await pool.connect()
  try {
    await client.query(`begin isolation level ${level}`)
    const processed = await inbox.processOnce(client, { consumer: by, eventId }, async () => {
      await client.query('update account set balance = balance + 1')
      await then(client)
      return 1
    })
    await client.query('commit')
    client.release()
    return processed
  } catch (error) {
    await client.query('rollback').catch(() => undefined)
    client.release(true)
    throw error
  }
}

describe('an event', () => {
  it('has its effect once, and is a duplicate from then on, which is no error', async () => {
    const [eventId, before] = [randomUUID(), await balance()]
    expect(await deposit(eventId)).toEqual({ duplicate: false, result: 1 })
    for (let copy = 0; copy < 4; copy++) expect(await deposit(eventId.toUpperCase())).toEqual({ duplicate: true })
    expect(await balance()).toBe(before + 1)
  })

  it('that comes in 20 copies at once has its effect once; the others wait and are duplicates', async () => {
    const [eventId, before] = [randomUUID(), await balance()]
    const { opened, open } = gate()
    const copies = Array.from({ length: 20 }, () => deposit(eventId, { then: () => opened }))
    await waiting(19)
    open()
    const processed = await Promise.all(copies)
    expect(processed.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
    expect(await balance()).toBe(before + 1)
  })

  it.each(['repeatable read', 'serializable'])(
    'that comes in copies under %s has its effect once; a copy that lost says what to do, and doing it reports a duplicate',
    async (level) => {
      const [eventId, before] = [randomUUID(), await balance()]
      const [inside, done] = [gate(), gate()]
      const first = deposit(eventId, {
        level,
        then() {
          inside.open()
          return done.opened
        },
      })
      await inside.opened
      const second = deposit(eventId, { level })
      await waiting(1).finally(done.open)
      expect(await Promise.allSettled([first, second])).toMatchObject([
        { value: { duplicate: false, result: 1 } },
        {
          reason: {
            code: '40001',
            message: expect.stringContaining(`A copy of event ${eventId} was processed meanwhile`) as string,
          },
        },
      ])
      expect(await deposit(eventId, { level })).toEqual({ duplicate: true })
      expect(await balance()).toBe(before + 1)
    },
  )

  it('is handled by every consumer for itself', async () => {
    const [eventId, before] = [randomUUID(), await balance()]
    for (const by of ['billing', 'mail', 'mail', 'billing']) await deposit(eventId, { by })
    expect(await balance()).toBe(before + 2)
    expect(await noted(eventId)).toEqual(['billing', 'mail'])
  })
})

describe('an effect that throws', () => {
  it('leaves neither a note nor what it wrote, and is run again when the event comes again', async () => {
    const [eventId, before] = [randomUUID(), await balance()]
    const fault = new Error('the card service is down')
    await expect(deposit(eventId, { then: () => Promise.reject(fault) })).rejects.toBe(fault)
    expect([await noted(eventId), await balance()]).toEqual([[], before])
    expect(await deposit(eventId)).toEqual({ duplicate: false, result: 1 })
    expect(await balance()).toBe(before + 1)
  })

  it('leaves no note even where its error is swallowed and the transaction commits', async () => {
    const eventId = randomUUID()
    const client = await pool.connect()
    await client.query('begin')
    const thrown = inbox.processOnce(client, { consumer, eventId }, () => {
      throw new Error('swallowed')
    })
    await expect(thrown).rejects.toThrow('swallowed')
    await client.query('commit')
    client.release()
    expect(await noted(eventId)).toEqual([])
  })

  it('keeps its own error where a statement of it failed, and leaves nothing', async () => {
    const eventId = randomUUID()
    await expect(
      deposit(eventId, { then: async (tx) => void (await (tx as pg.PoolClient).query('select 1 / 0')) }),
    ).rejects.toMatchObject({ code: '22012' })
    expect(await noted(eventId)).toEqual([])
  })

  it('does not make the copies that wait for it duplicates: the next one runs', async () => {
    const [eventId, before] = [randomUUID(), await balance()]
    const [inside, done] = [gate(), gate()]
    const first = deposit(eventId, {
      async then() {
        inside.open()
        await done.opened
        throw new Error('late')
      },
    })
    await inside.opened
    const second = deposit(eventId)
    await waiting(1).finally(done.open)
    expect(await Promise.allSettled([first, second])).toMatchObject([
      { reason: { message: 'late' } },
      { value: { duplicate: false, result: 1 } },
    ])
    expect(await balance()).toBe(before + 1)
  })
})

it('a backend that dies between effect and commit leaves neither, and the redelivery has the effect once', async () => {
  const [eventId, before] = [randomUUID(), await balance()]
  const killed = deposit(eventId, {
    then: async (tx) => {
      const { processID } = tx as pg.PoolClient & { processID: number }
      await pool.query('select pg_terminate_backend($1)', [processID])
    },
  })
  await expect(killed).rejects.toThrow()
  expect([await noted(eventId), await balance()]).toEqual([[], before])
  await deposit(eventId)
  expect([await noted(eventId), await balance()]).toEqual([['billing'], before + 1])
})

describe('what is refused, before any SQL', () => {
  const never = (): never => expect.fail('the effect ran')

  it.each<[string, object, string, string]>([
    ['an event id that is no UUID', { consumer, eventId: 'ev-9' }, 'EVENT_INVALID', '/eventId'],
    ['an event id that is no text', { consumer, eventId: 9 }, 'EVENT_INVALID', '/eventId'],
    ['no event id', { consumer }, 'OPTIONS_INVALID', 'eventId'],
    ['an empty consumer', { consumer: '', eventId: randomUUID() }, 'OPTIONS_INVALID', 'consumer'],
    ['a consumer with NUL', { consumer: 'a\0', eventId: randomUUID() }, 'OPTIONS_INVALID', 'consumer'],
    [
      'a consumer that is too long',
      { consumer: 'x'.repeat(256), eventId: randomUUID() },
      'OPTIONS_INVALID',
      'consumer',
    ],
    ['no consumer', { eventId: randomUUID() }, 'OPTIONS_INVALID', 'consumer'],
    ['another name', { consumer, eventId: randomUUID(), group: 'x' }, 'OPTIONS_INVALID', 'group'],
  ])('%s', async (_, claim, code, path) => {
    const client = await pool.connect()
    await client.query('begin')
    await expect(inbox.processOnce(client, claim as never, never)).rejects.toMatchObject({
      code,
      problems: [expect.objectContaining({ path }) as unknown],
    })
    await client.query('select 1')
    await client.query('rollback')
    client.release()
  })

  it('a pool, and a client outside a transaction', async () => {
    const claim = { consumer, eventId: randomUUID() }
    await expect(inbox.processOnce(pool as never, claim, never)).rejects.toMatchObject({ code: 'NOT_A_TRANSACTION' })
    const client = await pool.connect()
    await expect(inbox.processOnce(client, claim, never)).rejects.toMatchObject({ code: 'NOT_IN_TRANSACTION' })
    client.release()
    expect(await noted(claim.eventId)).toEqual([])
  })

  it('a schema without an inbox, with the remedy', async () => {
    const nowhere = createInbox({ client: fromPg(pool), schema: 'nowhere' })
    const client = await pool.connect()
    await client.query('begin')
    await expect(nowhere.processOnce(client, { consumer, eventId: randomUUID() }, never)).rejects.toMatchObject({
      code: 'SCHEMA_MISSING',
      message: expect.stringContaining('migrate()') as string,
    })
    await client.query('rollback')
    client.release()
  })

  it('bad options of an inbox and of a purge', async () => {
    expect(() => createInbox({ client: {}, schema: '', retention: 1 } as never)).toThrow(
      expect.objectContaining({ code: 'OPTIONS_INVALID' }),
    )
    for (const bad of [
      {},
      { consumer: '' },
      { consumer, retentionMs: -1 },
      { consumer, retentionMs: NaN },
      { consumer, days: 7 },
    ])
      await expect(inbox.purge(bad as never)).rejects.toMatchObject({ code: 'OPTIONS_INVALID' })
  })
})

describe('consumers store the event id for 7 days', () => {
  const age = async (eventId: string, days: number): Promise<void> => {
    await pool.query(
      `update outbox.processed_events set processed_at = now() - $2 * interval '1 day' where event_id = $1`,
      [eventId, days],
    )
  }

  it('and skip a duplicate before any side effect, on the seventh day too', async () => {
    const [eventId, before] = [randomUUID(), await balance()]
    await deposit(eventId)
    await age(eventId, 6.99)
    expect(await inbox.purge({ consumer })).toBe(0)
    expect(await deposit(eventId)).toEqual({ duplicate: true })
    expect(await balance()).toBe(before + 1)
  })

  it('and forget it then; the other consumers, with their own retention, do not', async () => {
    const [eventId, before] = [randomUUID(), await balance()]
    for (const by of ['billing', 'mail']) await deposit(eventId, { by })
    await age(eventId, 8)
    expect(await inbox.purge({ consumer: 'mail', retentionMs: 30 * day })).toBe(0)
    expect(await inbox.purge({ consumer: 'billing' })).toBe(1)
    expect(await noted(eventId)).toEqual(['mail'])
    expect(await deposit(eventId, { by: 'mail' })).toEqual({ duplicate: true })
    expect(await deposit(eventId, { by: 'billing' })).toEqual({ duplicate: false, result: 1 })
    expect(await balance()).toBe(before + 3)
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
