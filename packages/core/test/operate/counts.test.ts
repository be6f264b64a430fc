import { describe, expect, it } from 'vitest'
import { failed, insertEvents, operatorStand, published } from '../support/operator-stand.ts'

const exactly = (count: number): unknown => ({ count, more: false })
const atLeast = (count: number): unknown => ({ count, more: true })

describe('counts', () => {
  it('are none in an empty outbox, and nothing is the oldest', async () => {
    await using stand = await operatorStand()
    const counts = await stand.operator.counts()
    expect(counts).toEqual({
      ready: exactly(0),
      waiting: exactly(0),
      blocked: exactly(0),
      pending: exactly(0),
      scheduled: exactly(0),
      held: exactly(0),
      failed: exactly(0),
      published: { about: 0 },
      oldestPendingAgeMs: null,
      topics: [],
    })
  })

  it('say for each state and topic how many there are', async () => {
    await using stand = await operatorStand()
    const { pool } = stand
    await insertEvents(pool, 3, { key: `'free'`, ready_at: `now() - n * interval '1 minute'` })
    await insertEvents(pool, 4, {
      key: `'retrying'`,
      attempts: '(n = 1)::int',
      available_at: `case when n = 1 then now() + interval '1 hour' end`,
    })
    await insertEvents(pool, 3, { key: `'parked'`, status: `case when n = 2 then 'held' else 'pending' end` })
    await insertEvents(pool, 2, { key: `'stopped'`, topic: `'bills'` })
    await insertEvents(pool, 5, { status: `'scheduled'`, available_at: `now() + interval '1 hour'`, topic: `'bills'` })
    await insertEvents(pool, 7, failed)
    await insertEvents(pool, 11, published)
    await stand.operator.hold({ topic: 'bills', key: 'stopped' }, { reason: 'the test' })
    const counts = await stand.operator.counts()
    expect(counts).toMatchObject({
      ready: exactly(4),
      waiting: exactly(1),
      blocked: exactly(6),
      pending: exactly(11),
      scheduled: exactly(5),
      held: exactly(1),
      failed: exactly(7),
      published: { about: 11 },
    })
    expect(counts.oldestPendingAgeMs).toBeGreaterThanOrEqual(180_000)
    expect(counts.oldestPendingAgeMs).toBeLessThan(240_000)
    expect(counts.topics).toMatchObject([
      {
        topic: 'bills',
        ready: exactly(0),
        blocked: exactly(2),
        scheduled: exactly(5),
        failed: exactly(0),
        published: { about: 0 },
      },
      {
        topic: 'orders',
        ready: exactly(4),
        waiting: exactly(1),
        blocked: exactly(4),
        held: exactly(1),
        failed: exactly(7),
      },
    ])
    await stand.operator.hold({ topic: 'orders' }, { reason: 'the test' })
    expect(await stand.operator.counts()).toMatchObject({
      ready: exactly(0),
      blocked: exactly(10),
      waiting: exactly(1),
    })
  })

  it('end at a limit and say so', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 300, { key: 'n::text', ready_at: `now() - interval '1 hour'` })
    await insertEvents(stand.pool, 50, failed)
    expect(await stand.operator.counts({ limit: 100 })).toMatchObject({
      ready: atLeast(100),
      pending: atLeast(100),
      failed: exactly(50),
    })
    const { oldestPendingAgeMs } = await stand.operator.counts({ limit: 1 })
    expect(oldestPendingAgeMs).toBeGreaterThan(3_500_000)
    await expect(stand.operator.counts({ limit: 0, of: 'all' } as never)).rejects.toMatchObject({
      code: 'OPTIONS_INVALID',
      problems: [{ path: 'limit' }, { path: 'of' }],
    })
  })

  it('estimate what is published within a tenth, whatever the statistics say', async () => {
    await using stand = await operatorStand()
    await stand.pool.query('alter table outbox.events set (autovacuum_enabled = off)')
    await insertEvents(stand.pool, 120_000, {
      ...published,
      key: 'n::text',
      topic: `case when n % 4 = 0 then 'bills' else 'orders' end`,
    })
    await insertEvents(stand.pool, 120, {})
    const { published: all, pending, topics } = await stand.operator.counts()
    expect(pending).toEqual(exactly(120))
    expect(Math.abs(all.about - 120_000)).toBeLessThan(12_000)
    expect(topics.map(({ topic }) => topic)).toEqual(['bills', 'orders'])
  })
})
