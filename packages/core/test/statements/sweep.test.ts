import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compareLanes, firstLane, lastLane, slotOf } from '../../src/contract/lane.ts'
import { readSwept, sweepStatement } from '../../src/storage/sweep.ts'
import { everySlot, type OutboxDatabase, outboxDatabase } from '../support/outbox-database.ts'

let database: OutboxDatabase
beforeAll(async () => {
  database = await outboxDatabase()
  await database.pool.query(`insert into outbox.events (topic, key, payload) select 'o', 'k' || (n % 3000), 'x' from generate_series(1, 9000) n;
    insert into outbox.events (topic, key, payload, ordering) select 'o', 'k', 'x', 'none' from generate_series(1, 500) n;
    insert into outbox.events (topic, payload) select 'o', 'x' from generate_series(1, 500) n;
    insert into outbox.events (topic, key, payload, ordering) select 'o' || n, 'k', 'x', 'total' from generate_series(1, 50) n`)
})
afterAll(() => database[Symbol.asyncDispose]())

describe('sweep', () => {
  it('returns every row once, slot by slot and seven lanes at a time', async () => {
    const sweep = sweepStatement(database.names)
    const seen = new Map<string, number>()
    for (const slot of everySlot) {
      for (let from: string | undefined = firstLane(slot); from !== undefined; ) {
        const lanes = readSwept(
          (
            await database.session.run(
              sweep({ from, to: lastLane(slot), lanes: 7, rowsOfALane: 100, topics: null, rows: 2000 }),
            )
          ).rows,
        )
        for (const { lane, rows } of lanes) {
          expect(slotOf(lane)).toBe(slot)
          for (const { id } of rows) seen.set(id, (seen.get(id) ?? 0) + 1)
        }
        const last = lanes
          .map(({ lane }) => lane)
          .sort(compareLanes)
          .at(-1)
        from = lanes.length < 7 || last === undefined ? undefined : (BigInt(last) + 1n).toString()
      }
    }
    expect(seen.size).toBe(10_050)
    expect([...seen.values()].every((times) => times === 1)).toBe(true)
  })

  it('names the first row of a blocked lane without bringing rows', async () => {
    await database.pool.query(
      "update outbox.events set attempts = 1, available_at = now() + interval '1 h' where id = (select min(id) from outbox.events where key = 'k7' and ordering = 'key')",
    )
    const { rows } = await database.pool.query<{ lane: string; first: string }>(
      "select lane, min(id)::text first from outbox.events where key = 'k7' and ordering = 'key' group by lane",
    )
    const [blocked] = rows
    const found = readSwept(
      (
        await database.session.run(
          sweepStatement(database.names)({
            from: blocked?.lane ?? '',
            to: blocked?.lane ?? '',
            lanes: 500,
            rowsOfALane: 100,
            topics: null,
            rows: 2000,
          }),
        )
      ).rows,
    )
    expect(found).toEqual([{ lane: blocked?.lane, first: blocked?.first, rows: [] }])
  })

  it('keeps everything of total ordering in one lane, and gives unordered events a lane each', async () => {
    const { rows } = await database.pool.query<{ total: string; none: string }>(
      "select count(distinct lane) filter (where ordering = 'total') total, count(distinct lane) filter (where ordering = 'none' or key is null) none from outbox.events",
    )
    expect(rows[0]).toEqual({ total: '1', none: '1000' })
  })
})
