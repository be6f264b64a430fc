import { afterAll, beforeAll, expect, it } from 'vitest'
import type { SqlConnection } from '../../src/contract/sql-client.ts'
import { createOutbox } from '../../src/outbox.ts'
import { testPublisher } from '../support/test-publisher.ts'
import { createWatch } from '../support/watch.ts'
import { event, type Features, type OpenLibrary, openShop, type Shop } from './library.ts'

/** Migrate, wake-ups and relays work through the client, or say what they are missing. */
export function sessionPromises(open: OpenLibrary, { sessions }: Features): void {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(open, 10)
  })
  afterAll(() => shop[Symbol.asyncDispose]())

  async function withSession(use: (session: SqlConnection) => Promise<void>): Promise<void> {
    const session = await shop.library.client.connect()
    try {
      await use(session)
    } finally {
      await session.close()
    }
  }

  it('carry an outbox from its first migration to the broker', async () => {
    const outbox = createOutbox({ client: shop.library.client, schema: 'Second "Outbox"' })
    expect((await outbox.migrate()).applied.length).toBeGreaterThan(0)
    expect((await outbox.migrate()).applied).toEqual([])
    const payloads = [Buffer.alloc(100_000, 255), Buffer.from([0, 1, 2]), null, Buffer.from('\\x00')]
    await outbox.transaction(shop.library.db, (tx) =>
      outbox.enqueue(
        tx,
        payloads.map((payload) => ({ ...event, payload })),
      ),
    )
    const delivered: (Uint8Array | null)[] = []
    const relay = outbox.relay({
      publisher: testPublisher((run) => {
        delivered.push(...run.map(({ payload }) => payload))
        return { acknowledged: run.length }
      }),
    })
    expect(await relay.drain()).toMatchObject({ published: payloads.length, failed: 0 })
    expect(delivered.map((payload) => payload && Buffer.from(payload))).toEqual(payloads)
    await outbox.close()
  })

  it('hear of a commit at once, where they can listen', async () => {
    const { changed, until } = createWatch()
    const heard: string[] = []
    await withSession(async (session) => {
      session.onNotification?.((channel) => {
        heard.push(channel)
        changed()
      })
      await session.run({ text: 'listen "a channel"', values: [] })
      await shop.admin.query(`notify "a channel"`)
      expect(await until(() => heard[0])).toBe('a channel')
    })
  })

  it("return every column as the server's text, and bytea as bytes", async () => {
    await withSession(async (session) => {
      const text = `select 9007199254740993::bigint, true, false, null, '{1,2}'::bigint[], '{"a b",NULL}'::text[], 0.10::numeric,
        '2020-01-02 03:04:05.123456+00'::timestamptz at time zone 'UTC', '{"b":1, "a":2}'::json, 1.5::float8, 1 same, 2 same,
        '\\x00ff'::bytea, 'b'::text, gen_random_uuid() is null`
      for (const name of [undefined, 'inorder_test', 'inorder_test']) {
        const { rows, affected } = await session.run({ ...(name === undefined ? {} : { name }), text, values: [] })
        expect(affected).toBe(1)
        expect(rows[0]?.slice(0, 12)).toEqual([
          '9007199254740993',
          't',
          'f',
          null,
          '{1,2}',
          '{"a b",NULL}',
          '0.10',
          '2020-01-02 03:04:05.123456',
          '{"b":1, "a":2}',
          '1.5',
          '1',
          '2',
        ])
        expect(Buffer.from(rows[0]?.[12] as Uint8Array)).toEqual(Buffer.from([0, 255]))
        expect(rows[0]?.slice(13)).toEqual(['b', 'f'])
      }
    })
  })

  it('take every kind of parameter, and count the rows of a change', async () => {
    await withSession(async (session) => {
      const text =
        'select $1::text, $2::int, $3::float8, $4::bool, $5::bytea, $6::text[], $7::bytea[]::text, $8::bigint[], $9::text'
      const bytes = Uint8Array.of(0, 34, 92, 255)
      const values = ['a"\\', 1, 1.5, true, bytes, ['a,"\\', null, ''], [bytes, null], ['1', '2'], null]
      const { rows } = await session.run({ text, values })
      const [row = []] = rows
      expect(Buffer.from(row[4] as Uint8Array)).toEqual(Buffer.from(bytes))
      expect(row.toSpliced(4, 1)).toEqual([
        'a"\\',
        '1',
        '1.5',
        't',
        '{"a,\\"\\\\",NULL,""}',
        '{"\\\\x00225cff",NULL}',
        '{1,2}',
        null,
      ])
      await session.run({ text: 'insert into orders values (1), (2)', values: [] })
      expect(await session.run({ text: 'delete from orders where id = any($1)', values: [[1, 2, 3]] })).toMatchObject({
        affected: 2,
        rows: [],
      })
    })
  })

  it('keep a transaction to themselves, and leave nothing of it behind when they are closed', async () => {
    await withSession(async (session) => {
      await session.run({ text: 'begin', values: [] })
      await session.run({ text: 'insert into orders values (1)', values: [] })
      expect(await shop.admin.query('select from orders')).toMatchObject({ rowCount: 0 })
    })
    await shop.library.begin((tx) => shop.library.insertOrder(tx, 2).then(() => undefined))
    expect(await shop.take()).toMatchObject({ orders: 1 })
  })

  it('notice that their connection ended, and open another one when asked to', async () => {
    const session = await shop.library.client.connect()
    const { rows } = await session.run({ text: 'select pg_backend_pid()', values: [] })
    await shop.admin.query('select pg_terminate_backend($1, 5000)', [rows[0]?.[0]])
    expect(await session.ended).toBeInstanceOf(Error)
    await expect(session.run({ text: 'select 1', values: [] })).rejects.toThrow()
    await session.close()
    await withSession(async (another) => {
      expect(await another.run({ text: 'select 1', values: [] })).toMatchObject({ rows: [['1']] })
    })
  })

  it('end at once when they are closed, whatever is on its way, and their places are free again', async () => {
    for (let round = 0; round < 12; round++) {
      const session = await shop.library.client.connect()
      const slow = session.run({ text: 'select pg_sleep(60)', values: [] })
      const refused = expect(slow).rejects.toThrow()
      // Round trips of others, so that the statement is on its way.
      await shop.admin.query('select 1')
      await session.close()
      await refused
      expect(await session.ended).toBeUndefined()
      await session.close()
    }
    await shop.library.begin((tx) => shop.library.insertOrder(tx, 1).then(() => undefined))
    await shop.take()
  })

  if (sessions === 'lent') {
    it('are asked for by name, and enqueueing goes without them', async () => {
      const outbox = createOutbox({ client: shop.library.alone ?? shop.library.client })
      const wanted = { code: 'OPTIONS_INVALID', message: expect.stringMatching(/Write from\w+\(\w+, \w+/) as string }
      await expect(outbox.migrate()).rejects.toMatchObject(wanted)
      const relay = outbox.relay({ publisher: testPublisher(() => ({ acknowledged: 0 })) })
      await expect(relay.start()).rejects.toMatchObject(wanted)
      await outbox.transaction(shop.library.db, (tx) => outbox.enqueue(tx, event))
      expect(await shop.take()).toMatchObject({ events: 1 })
      await outbox.close()
    })
  }
}
