import { freshDatabase } from '@inorder/harness'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fromPg, type PgClient } from '../../src/clients/from-pg.ts'
import { OutboxError } from '../../src/contract/errors.ts'
import { createOutbox, type Outbox } from '../../src/outbox.ts'
import type { EventInput } from '../../src/write/validate-event.ts'

const event: EventInput = { topic: 'orders', key: 'a', payload: 1 }
let pool: pg.Pool
/** The application's own, with room for one transaction: a client that is not given back would be the last. */
let app: pg.Pool
let outbox: Outbox<PgClient, pg.Pool | PgClient>

beforeAll(async () => {
  pool = new pg.Pool({ connectionString: await freshDatabase(), max: 10 })
  app = new pg.Pool({ connectionString: pool.options.connectionString, max: 1 })
  outbox = createOutbox({ client: fromPg(pool) })
  await outbox.migrate()
  await pool.query('create table orders (id bigint primary key)')
})
afterAll(async () => {
  await outbox.close()
  await Promise.all([pool.end(), app.end()])
})

async function count(table = 'outbox.events'): Promise<number> {
  const { rows } = await pool.query<{ n: number }>(`select count(*)::int n from ${table}`)
  return rows[0]?.n ?? -1
}

/** A client as an older release of pg has it: nothing says whether a transaction is open. */
function withoutStatus(client: PgClient): PgClient {
  return { query: (config) => client.query(config) }
}

async function withClient(work: (client: pg.PoolClient) => Promise<void>): Promise<void> {
  const client = await pool.connect()
  try {
    await work(client)
  } finally {
    await client.query('rollback')
    client.release()
  }
}

describe.each<[string, (client: PgClient) => PgClient]>([
  ['a client that says whether a transaction is open', (client) => client],
  ['a client that cannot say it', withoutStatus],
])('with %s, enqueue', (_, as) => {
  it('is refused outside a transaction and writes nothing', async () => {
    await withClient(async (client) => {
      await expect(outbox.enqueue(as(client), event)).rejects.toMatchObject({
        code: 'NOT_IN_TRANSACTION',
        message: expect.stringContaining('BEGIN') as string,
      })
      await expect(outbox.enqueue(as(client), [])).rejects.toMatchObject({ code: 'NOT_IN_TRANSACTION' })
      await client.query('begin')
      await client.query('commit')
      await expect(outbox.enqueue(as(client), event)).rejects.toMatchObject({ code: 'NOT_IN_TRANSACTION' })
    })
    expect(await count()).toBe(0)
  })

  it('is refused in a transaction that has already failed, with what to do', async () => {
    await withClient(async (client) => {
      await client.query('begin')
      await client.query('select 1 / 0').catch(() => undefined)
      await expect(outbox.enqueue(as(client), event)).rejects.toMatchObject({
        code: 'NOT_IN_TRANSACTION',
        message: expect.stringContaining('ROLLBACK') as string,
      })
    })
    expect(await count()).toBe(0)
  })

  it('writes in an open transaction, inside a savepoint too', async () => {
    await withClient(async (client) => {
      await client.query('begin')
      await outbox.enqueue(as(client), event)
      await client.query('savepoint mine')
      await outbox.enqueue(as(client), event)
      const { rows } = await client.query<{ n: number }>('select count(*)::int n from outbox.events')
      expect(rows).toEqual([{ n: 2 }])
    })
    expect(await count()).toBe(0)
  })

  it('leaves the transaction usable when the event is bad', async () => {
    await withClient(async (client) => {
      await client.query('begin')
      await expect(outbox.enqueue(as(client), { ...event, topic: '' })).rejects.toMatchObject({ code: 'EVENT_INVALID' })
      await client.query('select 1')
    })
  })
})

describe('enqueue is refused', () => {
  it.each<[string, () => unknown]>([
    ['a pool', () => pool],
    ['undefined', () => undefined],
    ['null', () => null],
    ['a string', () => 'postgres://localhost'],
    ['a promise of a client', () => Promise.resolve()],
    ['an object without query', () => ({ connect: () => undefined })],
  ])('with %s instead of a client, and takes no connection for it', async (_, tx) => {
    const { totalCount } = pool
    await expect(outbox.enqueue(tx() as PgClient, event)).rejects.toSatisfy(
      (error) => error instanceof OutboxError && error.code === 'NOT_A_TRANSACTION',
    )
    expect(pool.totalCount).toBe(totalCount)
    expect(await count()).toBe(0)
  })

  it('in a client whose connection is gone, and its transaction with it', async () => {
    const client = new pg.Client({ connectionString: pool.options.connectionString })
    await client.connect()
    await client.query('begin')
    await client.end()
    await expect(outbox.enqueue(client, event)).rejects.toThrow()
    expect(await count()).toBe(0)
  })

  it.each([
    ['SCHEMA_MISSING', 'nowhere', 'create schema if not exists other'],
    ['SCHEMA_MISSING', 'empty', 'create schema empty'],
    ['SCHEMA_BEHIND', 'old', 'create schema old; create table old.events (id bigint, topic text)'],
  ])('with %s where no migration ran, naming the remedy and keeping the cause', async (code, schema, prepare) => {
    await pool.query(prepare)
    const other = createOutbox({ client: fromPg(pool), schema })
    await expect(other.transaction(pool, (tx) => other.enqueue(tx, event))).rejects.toMatchObject({
      code,
      message: expect.stringMatching(/outbox\.migrate\(\).*outbox\.migrationSql\(\)/) as string,
      cause: expect.objectContaining({ code: expect.stringMatching(/^(42P01|3F000|42703)$/) as string }) as unknown,
    })
    await other.close()
  })
})

describe('outbox.transaction', () => {
  it('commits what was done when its function returns, and gives the client back', async () => {
    const result = await outbox.transaction(app, async (tx) => {
      await tx.query({ text: 'insert into orders values (1)', values: [], rowMode: 'array', types: pg.types })
      return (await outbox.enqueue(tx, event)).duplicate
    })
    expect(result).toBe(false)
    expect([await count(), await count('orders')]).toEqual([1, 1])
    expect([app.idleCount, app.totalCount, app.waitingCount]).toEqual([1, 1, 0])
    await pool.query('truncate orders, outbox.events')
  })

  it('rolls back and gives the client back when its function throws, at once or later', async () => {
    const reason = new Error('no stock')
    await expect(
      outbox.transaction(app, async (tx) => {
        await outbox.enqueue(tx, event)
        throw reason
      }),
    ).rejects.toBe(reason)
    await expect(
      outbox.transaction(app, () => {
        throw reason
      }),
    ).rejects.toBe(reason)
    expect(await count()).toBe(0)
    expect([app.idleCount, app.totalCount, app.waitingCount]).toEqual([1, 1, 0])
  })

  it.each(['a pool', 'a client of its own', 'an older client'])(
    'does not report a commit that was none, because a statement failed and nobody said so: %s',
    async (kind) => {
      const client = await pool.connect()
      const db = kind === 'a pool' ? pool : kind === 'an older client' ? withoutStatus(client) : client
      await expect(
        outbox.transaction(db, async (tx) => {
          await outbox.enqueue(tx, event)
          await tx
            .query({ text: 'select 1 / 0', values: [], rowMode: 'array', types: pg.types })
            .catch(() => undefined)
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
    await pool.query(
      'create table if not exists parts (id bigint primary key, owner bigint references orders deferrable initially deferred)',
    )
    await expect(
      outbox.transaction(pool, async (tx) => {
        await outbox.enqueue(tx, event)
        await tx.query({
          text: 'insert into parts values (1, 99)',
          values: [],
          rowMode: 'array',
          types: pg.types,
        })
      }),
    ).rejects.toMatchObject({ code: '23503' })
    expect(await count()).toBe(0)
  })

  it('survives a connection that breaks between two statements, and gives no broken client back', async () => {
    const broken = new pg.Pool({ connectionString: pool.options.connectionString, max: 1 })
    const work = outbox.transaction(broken, async (tx) => {
      await outbox.enqueue(tx, event)
      const ended = new Promise((resolve) => (tx as pg.PoolClient).once('end', resolve))
      const { rows } = await tx.query({
        text: 'select pg_backend_pid()',
        values: [],
        rowMode: 'array',
        types: pg.types,
      })
      await pool.query('select pg_terminate_backend($1)', [rows[0]?.[0]])
      await ended
      await outbox.enqueue(tx, event)
    })
    await expect(work).rejects.toThrow()
    expect(broken.totalCount).toBe(0)
    expect(await count()).toBe(0)
    expect((await broken.query('select 1 as alive')).rows).toEqual([{ alive: 1 }])
    await broken.end()
  })

  it('leaves no listener on a client of the pool', async () => {
    const narrow = new pg.Pool({ connectionString: pool.options.connectionString, max: 1 })
    const listeners = async (): Promise<number> => {
      const client = await narrow.connect()
      const number = client.listenerCount('error')
      client.release()
      return number
    }
    const before = await listeners()
    for (let round = 0; round < 15; round++) await outbox.transaction(narrow, (tx) => outbox.enqueue(tx, event))
    expect(await listeners()).toBe(before)
    await narrow.end()
    await pool.query('truncate outbox.events')
  })

  it('inside a transaction of the caller is a savepoint of it', async () => {
    for (const as of [(client: PgClient) => client, withoutStatus]) {
      await withClient(async (client) => {
        await client.query('begin')
        await outbox.transaction(as(client), (tx) => outbox.enqueue(tx, event))
        await expect(outbox.transaction(as(client), () => Promise.reject(new Error('inner')))).rejects.toThrow('inner')
        await outbox.transaction(as(client), (tx) => outbox.transaction(tx, (inner) => outbox.enqueue(inner, event)))
        expect(await count()).toBe(0)
        expect(client.getTransactionStatus()).toBe('T')
      })
      expect(await count()).toBe(0)
    }
  })

  it('is refused in a transaction that has already failed', async () => {
    await withClient(async (client) => {
      await client.query('begin')
      await client.query('select 1 / 0').catch(() => undefined)
      await expect(outbox.transaction(client, () => Promise.resolve())).rejects.toMatchObject({
        code: 'NOT_IN_TRANSACTION',
      })
    })
  })

  it('always commits by itself on a pool, even on a client that somebody gave back inside a transaction', async () => {
    const narrow = new pg.Pool({ connectionString: pool.options.connectionString, max: 1 })
    const forgotten = await narrow.connect()
    await forgotten.query('begin')
    forgotten.release()
    await outbox.transaction(narrow, (tx) => outbox.enqueue(tx, event))
    expect(await count()).toBe(1)
    await narrow.end()
    await pool.query('truncate outbox.events')
  })
})

describe('a pool that is too small for a relay', () => {
  it('is refused when the relay starts, naming its size and the remedy', async () => {
    const small = new pg.Pool({ connectionString: pool.options.connectionString, max: 3 })
    await expect(createOutbox({ client: fromPg(small) }).migrate()).rejects.toMatchObject({
      code: 'OPTIONS_INVALID',
      message: expect.stringMatching(/up to 4 connections .* max is 3.*larger max/) as string,
    })
    expect(small.totalCount).toBe(0)
    await small.end()
  })
})
