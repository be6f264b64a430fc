import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fromPg, type PgClient } from '../../src/clients/from-pg.ts'
import { createOutbox } from '../../src/outbox.ts'
import { type Application, event, openApplication, sql, withoutStatus } from '../support/application.ts'
import { testPublisher } from '../support/test-publisher.ts'

let app: Application
beforeAll(async () => {
  app = await openApplication()
})
afterAll(() => app.close())

describe('outbox.transaction', () => {
  it('commits what was done when its function returns, and gives the client back', async () => {
    const result = await app.outbox.transaction(app.narrow, async (tx) => {
      await tx.query(sql('insert into orders values (1)'))
      return (await app.outbox.enqueue(tx, event)).duplicate
    })
    expect(result).toBe(false)
    expect([await app.count(), await app.count('orders')]).toEqual([1, 1])
    expect([app.narrow.idleCount, app.narrow.totalCount, app.narrow.waitingCount]).toEqual([1, 1, 0])
    await app.pool.query('truncate orders, outbox.events')
  })

  it('rolls back and gives the client back when its function throws, at once or later', async () => {
    const reason = new Error('no stock')
    await expect(
      app.outbox.transaction(app.narrow, async (tx) => {
        await app.outbox.enqueue(tx, event)
        throw reason
      }),
    ).rejects.toBe(reason)
    await expect(
      app.outbox.transaction(app.narrow, () => {
        throw reason
      }),
    ).rejects.toBe(reason)
    expect(await app.count()).toBe(0)
    expect([app.narrow.idleCount, app.narrow.totalCount, app.narrow.waitingCount]).toEqual([1, 1, 0])
  })

  it.each(['a pool', 'a client of its own', 'an older client'])(
    'does not report a commit that was none, because a statement failed and nobody said so: %s',
    async (kind) => {
      const client = await app.pool.connect()
      const db = kind === 'a pool' ? app.pool : kind === 'an older client' ? withoutStatus(client) : client
      await expect(
        app.outbox.transaction(db, async (tx) => {
          await app.outbox.enqueue(tx, event)
          await tx.query(sql('select 1 / 0')).catch(() => undefined)
        }),
      ).rejects.toMatchObject({
        code: 'NOT_IN_TRANSACTION',
        message: expect.stringContaining('nothing can be committed') as string,
      })
      expect((await client.query<{ n: number }>('select count(*)::int n from outbox.events')).rows).toEqual([{ n: 0 }])
      expect(client.getTransactionStatus()).toBe('I')
      client.release()
    },
  )

  it('lets an error of the commit itself reach the caller, as a deferred constraint makes it', async () => {
    await app.pool.query(
      'create table if not exists parts (id bigint primary key, owner bigint references orders deferrable initially deferred)',
    )
    await expect(
      app.outbox.transaction(app.pool, async (tx) => {
        await app.outbox.enqueue(tx, event)
        await tx.query(sql('insert into parts values (1, 99)'))
      }),
    ).rejects.toMatchObject({ code: '23503' })
    expect(await app.count()).toBe(0)
  })

  it('survives a connection that breaks between two statements, and gives no broken client back', async () => {
    const broken = new pg.Pool({ connectionString: app.pool.options.connectionString, max: 1 })
    const ended = new Promise((resolve) => broken.on('connect', (client) => client.once('end', resolve)))
    const work = app.outbox.transaction(broken, async (tx) => {
      await app.outbox.enqueue(tx, event)
      const { rows } = await tx.query(sql('select pg_backend_pid()'))
      await app.pool.query('select pg_terminate_backend($1)', [rows[0]?.[0]])
      await ended
      await app.outbox.enqueue(tx, event)
    })
    await expect(work).rejects.toThrow()
    expect(broken.totalCount).toBe(0)
    expect(await app.count()).toBe(0)
    expect((await broken.query('select 1 as alive')).rows).toEqual([{ alive: 1 }])
    await broken.end()
  })

  it('leaves no listener on a client of the pool', async () => {
    const small = new pg.Pool({ connectionString: app.pool.options.connectionString, max: 1 })
    const listeners = async (): Promise<number> => {
      const client = await small.connect()
      const number = client.listenerCount('error')
      client.release()
      return number
    }
    const before = await listeners()
    for (let round = 0; round < 15; round++) await app.outbox.transaction(small, (tx) => app.outbox.enqueue(tx, event))
    expect(await listeners()).toBe(before)
    await small.end()
    await app.pool.query('truncate outbox.events')
  })

  it('inside a transaction of the caller is a savepoint of it', async () => {
    for (const as of [(client: PgClient) => client, withoutStatus]) {
      await app.withClient(async (client) => {
        await client.query('begin')
        await app.outbox.transaction(as(client), (tx) => app.outbox.enqueue(tx, event))
        await expect(app.outbox.transaction(as(client), () => Promise.reject(new Error('inner')))).rejects.toThrow(
          'inner',
        )
        await app.outbox.transaction(as(client), (tx) =>
          app.outbox.transaction(tx, (inner) => app.outbox.enqueue(inner, event)),
        )
        expect(await app.count()).toBe(0)
        expect(client.getTransactionStatus()).toBe('T')
      })
      expect(await app.count()).toBe(0)
    }
  })

  it('is refused in a transaction that has already failed', async () => {
    await app.withClient(async (client) => {
      await client.query('begin')
      await client.query('select 1 / 0').catch(() => undefined)
      await expect(app.outbox.transaction(client, () => Promise.resolve())).rejects.toMatchObject({
        code: 'NOT_IN_TRANSACTION',
      })
    })
  })

  it('always commits by itself on a pool, even on a client that somebody gave back inside a transaction', async () => {
    const small = new pg.Pool({ connectionString: app.pool.options.connectionString, max: 1 })
    const forgotten = await small.connect()
    await forgotten.query('begin')
    forgotten.release()
    await app.outbox.transaction(small, (tx) => app.outbox.enqueue(tx, event))
    expect(await app.count()).toBe(1)
    await small.end()
    await app.pool.query('truncate outbox.events')
  })
})

describe('a pool that is too small for a relay', () => {
  it('is refused when the relay starts, naming its size and the remedy', async () => {
    const small = new pg.Pool({ connectionString: app.pool.options.connectionString, max: 3 })
    const outbox = createOutbox({ client: fromPg(small) })
    // Whoever only writes needs no more than one.
    await outbox.migrate()
    const relay = outbox.relay({ publisher: testPublisher(() => ({ acknowledged: 0 })) })
    await expect(relay.start()).rejects.toMatchObject({
      code: 'OPTIONS_INVALID',
      message: expect.stringMatching(/up to 5 connections .* max is 3.*larger max/) as string,
    })
    await outbox.close()
    await small.end()
  })
})
