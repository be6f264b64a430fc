import { afterAll, beforeAll, expect, it } from 'vitest'
import { createOutbox } from '../../src/outbox.ts'
import { sqlState } from '../../src/contract/sql-state.ts'
import { event, type OpenLibrary, openShop, type Shop } from './library.ts'

interface Written {
  readonly event_id: string
  readonly key: string | null
  readonly type: string | null
  readonly payload: Buffer | null
  readonly headers: unknown
}

/** What a library does to parameters and rows on its way does not reach the event. */
export function contentPromises(open: OpenLibrary): void {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(open)
  })
  afterAll(() => shop[Symbol.asyncDispose]())

  async function written(): Promise<Written[]> {
    const { rows } = await shop.admin.query<Written>(
      'select event_id, key, type, payload, headers from outbox.events order by id',
    )
    await shop.take()
    return rows
  }

  it('bytes arrive as they were: every value, none at all, and a tombstone', async () => {
    const every = Uint8Array.from({ length: 1024 }, (_, index) => index % 256)
    // A view into a larger buffer, as most libraries hand out.
    const payloads = [every, every.subarray(1, 512), new Uint8Array(), null, Buffer.alloc(1024 * 1024, 0)]
    await shop.library.begin(async (tx) => {
      await shop.outbox.enqueue(
        tx,
        payloads.map((payload) => ({ ...event, payload })),
      )
    })
    const stored = (await written()).map(({ payload }) => payload?.toString('hex') ?? null)
    expect(stored).toEqual(payloads.map((payload) => (payload === null ? null : Buffer.from(payload).toString('hex'))))
  })

  it('no placeholder, quote or backslash in a value means anything', async () => {
    const payload = `{"q":"50%? :name $1 \\ ' \\""}`
    const key = `a'b"c?:d`
    const hard = ['$1', '?', '??', ':name', '\\', '\\\\?', '{,}', 'NULL', ' ', '"', "'", 'ż😀', '\n\t', '\\x00']
    const events = hard.map((text) => ({
      topic: 'orders',
      key: text,
      type: text,
      payload: text,
      headers: { [text]: text },
    }))
    const both = async (tx: unknown): Promise<void> => {
      await shop.outbox.enqueue(tx, { topic: 'orders', key, payload: Buffer.from(payload) })
      await shop.outbox.enqueue(tx, { topic: 'orders', key: '', payload: '' })
      await shop.outbox.enqueue(tx, events)
    }
    await shop.library.begin(both)
    const [first, empty, ...rest] = await written()
    expect(first).toMatchObject({ key, payload: Buffer.from(payload) })
    expect(empty).toMatchObject({ key: '', type: null, payload: Buffer.from('""') })
    expect(rest).toMatchObject(
      hard.map((text) => ({
        key: text,
        type: text,
        payload: Buffer.from(JSON.stringify(text)),
        headers: { [text]: text },
      })),
    )
    const undone = shop.library.begin(async (tx) => {
      await both(tx)
      throw new Error('no stock')
    })
    await expect(undone).rejects.toThrow('no stock')
    expect(await written()).toEqual([])
  })

  it('many events of one call keep their order and get their ids back in it', async () => {
    const keys = Array.from({ length: 1000 }, (_, index) => String(index))
    let enqueued: readonly { id: string; eventId: string }[] = []
    await shop.library.begin(async (tx) => {
      enqueued = await shop.outbox.enqueue(
        tx,
        keys.map((key) => ({ ...event, key })),
      )
    })
    const ids = enqueued.map(({ id }) => BigInt(id))
    expect(ids).toEqual(ids.toSorted((a, b) => (a < b ? -1 : 1)))
    const rows = await written()
    expect(rows.map(({ key }) => key)).toEqual(keys)
    expect(rows.map(({ event_id }) => event_id)).toEqual(enqueued.map(({ eventId }) => eventId))
  })

  it('every field arrives: no key, a delay, a time, an ordering of its own', async () => {
    const availableAt = new Date('2100-01-02T03:04:05.678Z')
    await shop.library.begin(async (tx) => {
      await shop.outbox.enqueue(tx, [
        { ...event, key: null },
        { ...event, delayMs: 3_600_000 },
        { ...event, availableAt },
        { ...event, ordering: 'none' },
      ])
    })
    const { rows } = await shop.admin.query(
      `select key, status, ordering, available_at > now() + interval '30 min' later, available_at = '2100-01-02 03:04:05.678+00' at_time
       from outbox.events order by id`,
    )
    expect(rows).toMatchObject([
      { key: null, status: 'pending', later: null },
      { status: 'scheduled', later: true, at_time: false },
      { status: 'scheduled', later: true, at_time: true },
      { ordering: 'none', status: 'pending' },
    ])
    await shop.take()
  })

  it('an event id that is there already is a duplicate, and one of another event a conflict that harms nothing', async () => {
    const eventId = crypto.randomUUID()
    await shop.library.begin(async (tx) => {
      const first = await shop.outbox.enqueue(tx, { ...event, eventId })
      const again = await shop.outbox.enqueue(tx, { ...event, eventId })
      expect(first).toMatchObject({ eventId, duplicate: false })
      expect(again).toEqual({ ...first, duplicate: true })
      const conflict = shop.outbox.enqueue(tx, [event, { ...event, eventId, payload: 'another' }])
      await expect(conflict).rejects.toMatchObject({ code: 'EVENT_ID_CONFLICT' })
      await shop.library.insertOrder(tx, 1)
    })
    expect(await shop.take()).toEqual({ orders: 1, events: 1 })
  })

  it('writers of a key can be made to wait for each other', async () => {
    const serialized = createOutbox({ client: shop.library.client, serializeWrites: true })
    await serialized.transaction(shop.library.db, async (tx) => {
      await serialized.enqueue(tx, event)
      const held = await shop.admin.query(
        "select from pg_locks where locktype = 'advisory' and granted and database = (select oid from pg_database where datname = current_database())",
      )
      expect(held.rowCount).toBe(1)
    })
    await serialized.close()
    expect(await shop.take()).toMatchObject({ events: 1 })
  })

  it("an error of the server's reaches the caller with its SQLSTATE, for a retry loop to find", async () => {
    const eventId = crypto.randomUUID()
    const other = await shop.admin.connect()
    await other.query('begin')
    await other.query(`insert into outbox.events (event_id, topic) values ('${eventId}', 'orders')`)
    const work = shop.library.begin(async (tx) => {
      await shop.library.run(tx, "set local lock_timeout = '10ms'")
      await shop.outbox.enqueue(tx, { ...event, eventId })
    })
    const error = await work.then(
      () => undefined,
      (caught: unknown) => caught,
    )
    expect(sqlState(error)).toBe('55P03')
    expect(error).not.toHaveProperty('name', 'OutboxError')
    await other.query('rollback')
    other.release()
    expect(await shop.take()).toMatchObject({ events: 0 })
  })
}
