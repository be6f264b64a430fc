import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { everySlot, insert, type OutboxDatabase, outboxDatabase, payloads } from '../support/outbox-database.ts'

let database: OutboxDatabase
beforeAll(async () => {
  database = await outboxDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())
beforeEach(() => database.pool.query('delete from outbox.events'))

const idAfter = (id: string): string => (BigInt(id) + 1n).toString()

describe('find', () => {
  it('reads continued lanes from their start when arrivals reached their limit', async () => {
    const late = await database.connect()
    await late.query('begin')
    const a = await insert(late, 'k', 'A')
    const x = await insert(database.pool, 'k', 'X')
    await database.pool.query("update outbox.events set status = 'published' where id = $1", [x.id])
    const before = await database.snapshot()
    await late.query('commit')
    late.release()
    for (let filler = 0; filler < 5; filler++) await insert(database.pool, `filler-${String(filler)}`, '.')
    await insert(database.pool, 'k', 'B')
    // A was committed before B was inserted, lies beyond the limit, and has a lower id than the lane's low.
    const found = await database.find(before, { arrivals: 3, lanes: [a.lane], lows: [idAfter(x.id)] })
    expect(found.hit).toBe(true)
    expect(payloads(found, a.lane)).toBe('AB')
  })

  it('lowers a continued lane to the ids that arrived with the same answer', async () => {
    const late = await database.connect()
    await late.query('begin')
    const a = await insert(late, 'k', 'A')
    const x = await insert(database.pool, 'k', 'X')
    await database.pool.query("update outbox.events set status = 'published' where id = $1", [x.id])
    const before = await database.snapshot()
    await late.query('commit')
    late.release()
    await insert(database.pool, 'k', 'B')
    expect(payloads(await database.find(before, { lanes: [a.lane], lows: [idAfter(x.id)] }))).toBe('AB')
  })

  it('ends a run before an event that waits for its retry', async () => {
    const before = await database.snapshot()
    for (const payload of 'ABCDE') await insert(database.pool, 'k', payload)
    await database.pool.query(
      "update outbox.events set attempts = 1, available_at = now() + interval '1 h' where payload = 'D'",
    )
    expect(payloads(await database.find(before))).toBe('ABC')
  })

  it('ends a run before a held event', async () => {
    const before = await database.snapshot()
    for (const payload of 'ABC') await insert(database.pool, 'k', payload)
    await database.pool.query("update outbox.events set status = 'held' where payload = 'B'")
    expect(payloads(await database.find(before))).toBe('A')
  })

  it('returns the smallest arrived id of a busy lane and none of its rows', async () => {
    const before = await database.snapshot()
    const first = await insert(database.pool, 'k', 'A')
    await insert(database.pool, 'k', 'B')
    const { lanes } = await database.find(before, { busy: [first.lane] })
    expect(lanes).toEqual([{ lane: first.lane, first: first.id, rows: [] }])
  })

  it('shares its rows among the lanes', async () => {
    const before = await database.snapshot()
    for (let key = 0; key < 5; key++)
      for (const payload of 'AB') await insert(database.pool, `key-${String(key)}`, payload)
    expect(payloads(await database.find(before, { rows: 5 }))).toBe('AAAAA')
  })

  it('misses no row of transactions that end in any order, and brings none that was rolled back', async () => {
    let previous = await database.snapshot()
    const open = []
    for (let number = 0; number < 20; number++) {
      const writer = await database.connect()
      await writer.query('begin')
      await writer.query('savepoint a')
      await insert(writer, `z-${String(number)}`, 'rolled back')
      await writer.query('rollback to a')
      await writer.query('savepoint b')
      await insert(writer, `z-${String(number)}`, 'kept')
      await writer.query('release b')
      open.push(writer)
    }
    const seen = new Map<string, string>()
    const look = async (): Promise<void> => {
      const found = await database.find(previous)
      previous = found.snapshot
      for (const { rows } of found.lanes)
        for (const row of rows) seen.set(row.id, Buffer.from(row.payload ?? []).toString())
    }
    await look()
    for (let number = 0; number < 20; number++) {
      await insert(database.pool, `y-${String(number)}`, 'alone')
      await look()
      const writer = open[(number * 7) % 20]
      await writer?.query(number % 4 === 0 ? 'rollback' : 'commit')
      await look()
    }
    for (const writer of open) writer.release()
    expect([...seen.values()].filter((payload) => payload === 'kept')).toHaveLength(15)
    expect([...seen.values()].filter((payload) => payload === 'alone')).toHaveLength(20)
    expect([...seen.values()]).not.toContain('rolled back')
  })

  it('leaves out what belongs to other slots or other topics', async () => {
    const before = await database.snapshot()
    const mine = await insert(database.pool, 'k', 'A')
    await insert(database.pool, 'k', 'B', 'payments')
    const slot = Number((BigInt(mine.lane) >> 56n) + 128n)
    expect(payloads(await database.find(before, { topics: ['orders'] }))).toBe('A')
    expect(
      payloads(await database.find(before, { slots: everySlot.filter((each) => each !== slot), topics: ['orders'] })),
    ).toBe('')
  })

  it('leaves out a held topic and a held lane, and stops a total lane at the first event of a held topic', async () => {
    const before = await database.snapshot()
    await insert(database.pool, 'a', 'A', 'stopped')
    const b = await insert(database.pool, 'b', 'B')
    await insert(database.pool, 'c', 'C')
    for (const [topic, payload] of [
      ['orders', '1'],
      ['orders', '2'],
      ['stopped', '3'],
      ['orders', '4'],
    ]) {
      await database.pool.query(
        "insert into outbox.events (topic, key, payload, ordering) values ($1, 'k', $2, 'total')",
        [topic, Buffer.from(payload ?? '')],
      )
    }
    await database.pool.query("insert into outbox.holds (topic) values ('stopped')")
    await database.pool.query('insert into outbox.holds (lane) values ($1)', [b.lane])
    const found = await database.find(before)
    await database.pool.query('delete from outbox.holds')
    expect(payloads(found).split('').sort().join('')).toBe('12C')
  })

  it('tells how long until the next event is due, and null when none waits', async () => {
    const before = await database.snapshot()
    expect((await database.find(before)).nextDueMs).toBeNull()
    await database.pool.query(
      "insert into outbox.events (topic, key, payload, status, available_at) values ('o', 'k', 'x', 'scheduled', now() + interval '1 h')",
    )
    const { nextDueMs } = await database.find(before)
    expect(nextDueMs).toBeGreaterThan(3_590_000)
    expect(nextDueMs).toBeLessThanOrEqual(3_600_000)
  })

  it('brings payloads up to 4,096 bytes along and only the size of larger ones', async () => {
    const before = await database.snapshot()
    await insert(database.pool, 'small', 's'.repeat(4096))
    await insert(database.pool, 'large', 'l'.repeat(4097))
    await database.pool.query("insert into outbox.events (topic, key) values ('orders', 'tombstone')")
    const rows = (await database.find(before)).lanes.flatMap((lane) => lane.rows)
    expect(new Map(rows.map(({ key, size, payload }) => [key, [size, payload?.byteLength ?? null]]))).toEqual(
      new Map([
        ['small', [4096, 4096]],
        ['large', [4097, null]],
        ['tombstone', [null, null]],
      ]),
    )
  })
})
