import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fromPg, type PgClient } from '../../src/clients/from-pg.ts'
import { OutboxError } from '../../src/contract/errors.ts'
import { createOutbox } from '../../src/outbox.ts'
import { type Application, event, openApplication, withoutStatus } from '../support/application.ts'

let app: Application
beforeAll(async () => {
  app = await openApplication()
})
afterAll(() => app.close())

describe.each<[string, (client: PgClient) => PgClient]>([
  ['a client that says whether a transaction is open', (client) => client],
  ['a client that cannot say it', withoutStatus],
])('with %s, enqueue', (_, as) => {
  it('is refused outside a transaction and writes nothing', async () => {
    await app.withClient(async (client) => {
      await expect(app.outbox.enqueue(as(client), event)).rejects.toMatchObject({
        code: 'NOT_IN_TRANSACTION',
        message: expect.stringContaining('BEGIN') as string,
      })
      await client.query('begin')
      await client.query('commit')
      await expect(app.outbox.enqueue(as(client), event)).rejects.toMatchObject({ code: 'NOT_IN_TRANSACTION' })
    })
    expect(await app.count()).toBe(0)
  })

  it('is refused in a transaction that has already failed, with what to do', async () => {
    await app.withClient(async (client) => {
      await client.query('begin')
      await client.query('select 1 / 0').catch(() => undefined)
      await expect(app.outbox.enqueue(as(client), event)).rejects.toMatchObject({
        code: 'NOT_IN_TRANSACTION',
        message: expect.stringContaining('ROLLBACK') as string,
      })
    })
    expect(await app.count()).toBe(0)
  })

  it('writes in an open transaction, inside a savepoint too', async () => {
    await app.withClient(async (client) => {
      await client.query('begin')
      await app.outbox.enqueue(as(client), event)
      await client.query('savepoint mine')
      await app.outbox.enqueue(as(client), event)
      const { rows } = await client.query<{ n: number }>('select count(*)::int n from outbox.events')
      expect(rows).toEqual([{ n: 2 }])
    })
    expect(await app.count()).toBe(0)
  })

  it('leaves the transaction usable when the event is bad', async () => {
    await app.withClient(async (client) => {
      await client.query('begin')
      await expect(app.outbox.enqueue(as(client), { ...event, topic: '' })).rejects.toMatchObject({
        code: 'EVENT_INVALID',
      })
      await client.query('select 1')
    })
  })
})

describe('enqueue is refused', () => {
  it('outside a transaction even when there is nothing to write', async () => {
    await app.withClient(async (client) => {
      await expect(app.outbox.enqueue(client, [])).rejects.toMatchObject({ code: 'NOT_IN_TRANSACTION' })
    })
  })

  it.each<[string, () => unknown]>([
    ['a pool', () => app.pool],
    ['undefined', () => undefined],
    ['null', () => null],
    ['a string', () => 'postgres://localhost'],
    ['a promise of a client', () => Promise.resolve()],
    ['an object without query', () => ({ connect: () => undefined })],
  ])('with %s instead of a client, and takes no connection for it', async (_, tx) => {
    const { totalCount } = app.pool
    await expect(app.outbox.enqueue(tx() as PgClient, event)).rejects.toSatisfy(
      (error) => error instanceof OutboxError && error.code === 'NOT_A_TRANSACTION',
    )
    expect(app.pool.totalCount).toBe(totalCount)
    expect(await app.count()).toBe(0)
  })

  it('in a client whose connection is gone, and its transaction with it', async () => {
    const client = new pg.Client({ connectionString: app.pool.options.connectionString })
    await client.connect()
    await client.query('begin')
    await client.end()
    await expect(app.outbox.enqueue(client, event)).rejects.toThrow()
    expect(await app.count()).toBe(0)
  })

  it.each([
    ['SCHEMA_MISSING', 'nowhere', 'create schema if not exists other'],
    ['SCHEMA_MISSING', 'empty', 'create schema empty'],
    ['SCHEMA_BEHIND', 'old', 'create schema old; create table old.events (id bigint, topic text)'],
  ])('with %s where no migration ran, naming the remedy and keeping the cause', async (code, schema, prepare) => {
    await app.pool.query(prepare)
    const other = createOutbox({ client: fromPg(app.pool), schema })
    await expect(other.transaction(app.pool, (tx) => other.enqueue(tx, event))).rejects.toMatchObject({
      code,
      message: expect.stringMatching(/outbox\.migrate\(\).*outbox\.migrationSql\(\)/) as string,
      cause: expect.objectContaining({ code: expect.stringMatching(/^(42P01|3F000|42703)$/) as string }) as unknown,
    })
    await other.close()
  })
})
