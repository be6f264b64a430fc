import { randomUUID } from 'node:crypto'
import { afterAll, describe, expect, it } from 'vitest'
import { fromPg } from '../../src/clients/from-pg.ts'
import { createInbox } from '../../src/consume/inbox.ts'
import { inboxAccount } from '../support/inbox-account.ts'

const account = await inboxAccount()
const { pool, inbox } = account
afterAll(() => account[Symbol.asyncDispose]())

const consumer = 'billing'

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
    // In words that fit the call: the refusals are those of enqueue.
    const message = expect.not.stringMatching(/enqueue|event/) as string
    await expect(inbox.processOnce(pool as never, claim, never)).rejects.toMatchObject({
      code: 'NOT_A_TRANSACTION',
      message,
    })
    const client = await pool.connect()
    const outside = inbox.processOnce(client, claim, never)
    await expect(outside).rejects.toMatchObject({ code: 'NOT_IN_TRANSACTION', message })
    await client.query('begin')
    await client.query('select 1 / 0').catch(() => undefined)
    const inFailed = inbox.processOnce(client, claim, never)
    await expect(inFailed).rejects.toMatchObject({ code: 'NOT_IN_TRANSACTION', message })
    await client.query('rollback')
    client.release()
    expect(await account.noted(claim.eventId)).toEqual([])
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
