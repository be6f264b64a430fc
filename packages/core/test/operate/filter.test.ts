import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { insertEvents, operatorStand, published } from '../support/operator-stand.ts'

const at = (text: string): Date => new Date(`2024-06-01T${text}Z`)

/** Ten failed events that differ in everything a filter can ask for. */
async function tenFailed(pool: pg.Pool): Promise<void> {
  await insertEvents(pool, 10, {
    topic: `case when n <= 5 then 'orders' else 'bills' end`,
    key: `case n when 3 then null when 4 then '' else 'k' || n % 2 end`,
    ordering: `case n when 7 then 'total' when 8 then 'none' else 'key' end`,
    type: `case when n % 5 = 0 then 'order.placed' end`,
    status: `case when n % 4 = 0 then 'held' else 'failed' end`,
    failed_at: `case when n <> 9 then timestamptz '2024-06-01 12:00:00Z' + n * interval '1 minute' end`,
    created_at: `timestamptz '2024-06-01 08:00:00Z' + n * interval '1 minute'`,
    last_error: `case when n % 3 = 0 then '50% off_\\ no' else 'timeout ' || n end`,
  })
  await pool.query(
    `insert into outbox.failures (event, at, requeues, attempt, relay, outcome, error)
     select id, now() - i * interval '1 minute', 0, 2 - i, 'r', case when (id + i) % 2 = 0 then 'rejected' else 'unknown' end, 'no' from outbox.events, generate_series(0, 1) i`,
  )
}

describe('a filter means exactly the events for which everything in it holds:', () => {
  it.each([
    ['a topic', { topic: 'orders' }, [1, 2, 3, 4, 5]],
    ['a key in any topic, however it is ordered', { key: 'k1' }, [1, 5, 7, 9]],
    ['the empty key', { key: '' }, [4]],
    ['a topic and a key', { topic: 'bills', key: 'k0' }, [6, 8, 10]],
    ['a type', { type: 'order.placed' }, [5, 10]],
    ['a state', { status: 'held' as const }, [4, 8]],
    ['several states', { status: ['held' as const, 'failed' as const] }, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
    ['text in the last error', { cause: 'timeout 1' }, [1, 10]],
    ['text that would be a pattern elsewhere', { cause: '% off_\\' }, [3, 6, 9]],
    ['the outcome of the last failure', { outcome: 'rejected' }, [2, 4, 6, 8, 10]],
    ['a stretch of time of failing', { failedAfter: at('12:02:00'), failedBefore: at('12:05:00') }, [2, 3, 4]],
    [
      'a time of failing, which an event without one has not',
      { failedAfter: at('00:00:00') },
      [1, 2, 3, 4, 5, 6, 7, 8, 10],
    ],
    ['a stretch of time of writing', { createdAfter: at('08:09:00') }, [9, 10]],
    ['ids', { ids: ['2', '4', '4', '999'] }, [2, 4]],
    ['ids and more', { ids: ['2', '4'], status: 'held' as const }, [4]],
    ['several things', { topic: 'bills', outcome: 'unknown', cause: 'timeout' }, [7]],
  ])('%s', async (_, filter, expected) => {
    await using stand = await operatorStand()
    await tenFailed(stand.pool)
    expect(await stand.operator.requeue(filter, { dryRun: true })).toMatchObject({ matched: expected.length })
    expect(await stand.operator.requeue(filter)).toMatchObject({ changed: expected.length })
    const { rows } = await stand.pool.query<{ id: string }>(
      `select id from outbox.events where status = 'pending' order by id`,
    )
    expect(rows.map(({ id }) => Number(id))).toEqual(expected)
  })

  it('a lane', async () => {
    await using stand = await operatorStand()
    await tenFailed(stand.pool)
    const { rows } = await stand.pool.query<{ lane: string }>('select lane from outbox.events where id = 7')
    expect(await stand.operator.requeue({ lane: rows[0]?.lane ?? '' })).toMatchObject({ changed: 1 })
  })

  it('event ids', async () => {
    await using stand = await operatorStand()
    await tenFailed(stand.pool)
    const { rows } = await stand.pool.query<{ event_id: string }>(
      'select event_id from outbox.events where id in (3, 8)',
    )
    const eventIds = rows.map(({ event_id }) => event_id.toUpperCase())
    expect(await stand.operator.requeue({ eventIds })).toMatchObject({ changed: 2, unmatched: 0 })
  })

  it('pending and scheduled events among many, through whichever index has them', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 11_000, { key: `'k' || n`, type: `case when n % 5500 = 0 then 'rare' end` })
    await insertEvents(stand.pool, 11_000, {
      key: 'n::text',
      status: `'scheduled'`,
      available_at: `now() + interval '1 hour' + n * interval '1 ms'`,
      type: `case when n % 5500 = 0 then 'rare' end`,
    })
    await insertEvents(stand.pool, 10, {
      attempts: '1',
      available_at: `now() + interval '1 hour'`,
      key: `'waits' || n`,
      type: `'rare'`,
    })
    const status = ['pending', 'scheduled', 'failed'] as const
    const rare = { type: 'rare', status }
    expect(await stand.operator.discard(rare, { dryRun: true })).toMatchObject({ matched: 14 })
    expect(await stand.operator.reschedule({ type: 'rare' }, { at: 'now', dryRun: true })).toMatchObject({
      matched: 12,
    })
    expect(await stand.operator.discard({ ...rare, status: 'scheduled' })).toMatchObject({ changed: 2 })
    expect(await stand.operator.discard(rare)).toMatchObject({ changed: 12 })
    expect(await stand.operator.discard({ status })).toMatchObject({ changed: 21_996 })
    expect(await stand.states()).toEqual({})
  })

  it('published events of one moment, more than one look takes', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 25_000, { ...published, key: 'n::text' })
    const scanned: number[] = []
    const report = await stand.operator.replay(
      { topic: 'orders' },
      { dryRun: true, onProgress: (progress) => void scanned.push(progress.scanned) },
    )
    expect(report).toMatchObject({ matched: 25_000, dryRun: true })
    expect(scanned.at(-1)).toBe(25_000)
  })
})
