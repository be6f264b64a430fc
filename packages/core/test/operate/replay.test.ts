import { describe, expect, it } from 'vitest'
import { insertEvents, operatorStand, published } from '../support/operator-stand.ts'

describe('replay', () => {
  it('publishes again what was published in a stretch of time, in order, with the same event ids', async () => {
    await using stand = await operatorStand()
    // Published the other way round, as after a requeue.
    await insertEvents(stand.pool, 20, {
      ...published,
      published_at: `now() - n * interval '1 minute'`,
      key: `'k' || n % 2`,
    })
    const { rows } = await stand.pool.query<{ event_id: string; payload: Buffer }>(
      'select event_id, payload from outbox.events order by id',
    )
    await using relay = await stand.finding()
    const minutesAgo = (minutes: number): Date => new Date(Date.now() - minutes * 60_000)
    const report = await stand.operator.replay(
      { topic: 'orders', publishedFrom: minutesAgo(15.5), publishedTo: minutesAgo(5.5) },
      { batchSize: 2 },
    )
    expect(report).toMatchObject({ matched: 10, changed: 10, laterPublished: { events: 5, keys: 2 } })
    await stand.deliveries(10)
    await relay.drain()
    const expected = rows.slice(5, 15)
    for (const parity of ['0', '1']) {
      const mine = stand.events.filter(({ key }) => key === `k${parity}`)
      const theirs = expected.filter((row) => Number(row.payload.toString()) % 2 === Number(parity))
      expect(mine.map(({ eventId, requeues, attempt }) => ({ eventId, requeues, attempt }))).toEqual(
        theirs.map(({ event_id }) => ({ eventId: event_id, requeues: 1, attempt: 1 })),
      )
    }
    expect(await stand.states()).toEqual({ published: 20 })
  })

  it('ends, although what it replays is published again meanwhile', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 60, { ...published, key: 'n::text' })
    await using relay = await stand.finding()
    const interrupt = new AbortController()
    const first = await stand.operator.replay(
      { topic: 'orders' },
      {
        batchSize: 4,
        signal: interrupt.signal,
        onProgress({ changed }) {
          if (changed >= 20) interrupt.abort()
        },
      },
    )
    expect(first).toMatchObject({ finished: false, changed: 20 })
    const audit = await stand.pool.query('select distinct filter from outbox.audit where action = $1', [first.action])
    expect(audit.rows).toEqual([{ filter: { topic: 'orders', publishedTo: first.publishedTo.toISOString() } }])
    await relay.drain()
    const second = await stand.operator.replay({ topic: 'orders', publishedTo: first.publishedTo }, { batchSize: 4 })
    expect(second).toMatchObject({ finished: true, matched: 40, changed: 40 })
    await relay.drain()
    const { rows } = await stand.pool.query('select distinct status, requeues from outbox.events')
    expect(rows).toEqual([{ status: 'published', requeues: 1 }])
  })

  it('says that there may be more when it did not look at everything behind', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 1, { ...published, key: `'first'`, published_at: `now() - interval '1 day'` })
    await insertEvents(stand.pool, 60_000, {
      ...published,
      key: `case n when 10 then 'first' when 59999 then 'first' else 'k' || n end`,
    })
    const report = await stand.operator.replay(
      { key: 'first', publishedTo: new Date(Date.now() - 3_600_000) },
      { dryRun: true },
    )
    expect(report).toMatchObject({ matched: 1, laterPublished: { events: 1, keys: 1, atLeast: true } })
  })
})
