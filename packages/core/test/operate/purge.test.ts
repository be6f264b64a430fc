import { describe, expect, it } from 'vitest'
import { purgeInboxStatement, readPurgedInbox } from '../../src/storage/purge-inbox.ts'
import { outboxDatabase } from '../support/outbox-database.ts'
import { failed, insertEvents, operatorStand, published } from '../support/operator-stand.ts'

const old = { ...published, published_at: `now() - interval '8 days'` }

describe('purge', () => {
  it('deletes what is past its retention and nothing else', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 2500, old)
    await insertEvents(stand.pool, 100, { ...published, published_at: `now() - interval '6 days 23 hours 59 minutes'` })
    await insertEvents(stand.pool, 10, { ...failed, failed_at: `now() - interval '30 days'` })
    await insertEvents(stand.pool, 10, { created_at: `now() - interval '30 days'` })
    await stand.pool.query(
      `insert into outbox.failures (event, at, requeues, attempt, relay, outcome, error) select id, now(), 0, 1, 'r', 'rejected', 'no' from outbox.events`,
    )
    const before = await stand.contents()
    expect(await stand.operator.purge({ dryRun: true })).toMatchObject({ dryRun: true, deleted: 2500, finished: true })
    expect(await stand.contents()).toEqual(before)
    const report = await stand.operator.purge()
    expect(report).toMatchObject({ dryRun: false, deleted: 2500, finished: true })
    expect(await stand.states()).toEqual({ published: 100, failed: 10, pending: 10 })
    expect((await stand.pool.query('select count(*)::int n from outbox.failures')).rows).toEqual([{ n: 120 }])
    const { rows } = await stand.pool.query(
      'select verb, filter, sum(affected)::int affected, count(*)::int transactions from outbox.audit where action = $1 group by 1, 2',
      [report.action],
    )
    expect(rows).toEqual([
      { verb: 'purge', filter: { retainPublishedMs: 604_800_000 }, affected: 2500, transactions: 3 },
    ])
  })

  it('is done by two at once without waiting for each other or for a locked row, beside enqueues and a relay', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 6000, old)
    await using relay = stand.relay()
    await relay.start()
    const person = await stand.pool.connect()
    await person.query('begin')
    await person.query('select 1 from outbox.events where id = 3 for update')
    const traffic = async (): Promise<void> => {
      for (let number = 0; number < 50; number++) await stand.enqueue({ key: String(number), payload: String(number) })
    }
    const other = stand.outbox.operator({ actor: 'joe' })
    const [first, second] = await Promise.all([
      stand.operator.purge({ batchSize: 100 }),
      other.purge({ batchSize: 100 }),
      traffic(),
    ])
    expect(first.deleted + second.deleted).toBe(5999)
    await person.query('rollback')
    person.release()
    expect(await stand.operator.purge()).toMatchObject({ deleted: 1 })
    await stand.deliveries(50)
    await relay.drain()
    expect(await stand.states()).toEqual({ published: 50 })
  })

  it('ends at the number of rows that it was given, or when it is interrupted', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 300, old)
    expect(await stand.operator.purge({ maxRows: 70, batchSize: 50 })).toMatchObject({ deleted: 70, finished: false })
    const interrupt = new AbortController()
    const report = await stand.operator.purge({
      batchSize: 50,
      signal: interrupt.signal,
      onProgress: (deleted) => deleted === 100 && interrupt.abort(),
    })
    expect(report).toMatchObject({ deleted: 100, finished: false })
    expect(await stand.operator.purge()).toMatchObject({ deleted: 130, finished: true })
  })

  it('refuses options that are wrong, all of them at once', async () => {
    await using stand = await operatorStand()
    const wrong = { retainPublishedMs: Number.NaN, batchSize: 0, maxRows: '5', older: 1 }
    await expect(stand.operator.purge(wrong as never)).rejects.toMatchObject({
      code: 'OPTIONS_INVALID',
      problems: [{ path: 'retainPublishedMs' }, { path: 'batchSize' }, { path: 'maxRows' }, { path: 'older' }],
    })
  })
})

describe('the inbox', () => {
  it('is purged for one consumer at a time, oldest first, and by one purger', async () => {
    await using database = await outboxDatabase()
    const { pool, session, names } = database
    await pool.query(
      `insert into outbox.processed_events (consumer, event_id, processed_at)
       select consumer, gen_random_uuid(), now() - age * interval '1 day' from unnest(array['a', 'b']) consumer, generate_series(1, 20) age`,
    )
    const purge = purgeInboxStatement(names)({ consumer: 'a', retentionMs: 7.5 * 86_400_000, limit: 10 })
    const count = async (): Promise<number | null> => readPurgedInbox((await session.run(purge)).rows)
    const other = await database.connect()
    await other.query('begin')
    await other.query(purge.text, [...purge.values])
    expect(await count()).toBeNull()
    await other.query('rollback')
    other.release()
    expect(await count()).toBe(10)
    const left = `select consumer, count(*)::int n, max(extract(day from now() - processed_at))::int oldest from outbox.processed_events group by 1 order by 1`
    expect((await pool.query(left)).rows).toEqual([
      { consumer: 'a', n: 10, oldest: 10 },
      { consumer: 'b', n: 20, oldest: 20 },
    ])
    expect(await count()).toBe(3)
    expect(await count()).toBe(0)
  })
})
