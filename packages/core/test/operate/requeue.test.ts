import { describe, expect, it } from 'vitest'
import { failed, insertEvents, operatorStand, published } from '../support/operator-stand.ts'

const rejected = { kind: 'rejected', cause: new Error('the broker says no') } as const

describe('requeue', () => {
  it('puts a failed event in line before what is behind it and not yet published', async () => {
    await using stand = await operatorStand((_, tries) =>
      tries === 1 && stand.delivered.length === 0 ? rejected : undefined,
    )
    await stand.enqueue({ payload: '1' })
    await using _ = await stand.finding({ maxAttempts: 1 })
    await stand.signal(({ kind }) => kind === 'failed')
    await stand.operator.hold({ topic: 'orders', key: 'k' }, { reason: 'the test' })
    await stand.enqueue({ payload: '2' }, { payload: '3' })
    expect(await stand.operator.requeue({ topic: 'orders', key: 'k' })).toMatchObject({ matched: 1, changed: 1 })
    await stand.operator.release({ topic: 'orders', key: 'k' })
    expect(await stand.deliveries(3)).toEqual(['1', '2', '3'])
  })

  it('brings the failed events of a key out in their order, and names what was published behind them', async () => {
    await using stand = await operatorStand()
    const given = 'n in (1, 2, 4)'
    await insertEvents(stand.pool, 5, {
      status: `case when ${given} then 'failed' else 'published' end`,
      failed_at: `case when ${given} then now() - n * interval '1 s' end`,
      published_at: `case when ${given} then null else now() end`,
    })
    const expected = {
      matched: 3,
      changed: 3,
      laterPublished: { events: 2, keys: 1, atLeast: false, examples: [{ topic: 'orders', key: 'k', events: 2 }] },
    }
    expect(await stand.operator.requeue({ status: 'failed' }, { dryRun: true })).toMatchObject(expected)
    await using relay = stand.relay()
    await relay.start()
    expect(await stand.operator.requeue({ status: 'failed' })).toMatchObject(expected)
    expect(await stand.deliveries(3)).toEqual(['1', '2', '4'])
  })

  it('brings a whole key out in order although it failed in another one, a few events at a time', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 100, { ...failed, failed_at: `now() - (n * 37 % 100) * interval '1 s'` })
    await using _ = await stand.finding()
    expect(await stand.operator.requeue({ key: 'k' }, { batchSize: 3 })).toMatchObject({ changed: 100, skipped: 0 })
    expect(await stand.deliveries(100)).toEqual(Array.from({ length: 100 }, (__, n) => String(n + 1)))
  })

  it('lets a held key go on in order', async () => {
    await using stand = await operatorStand((_, tries) => (tries === 1 ? rejected : undefined))
    await stand.enqueue({ payload: '1' }, { payload: '2' }, { payload: '3' })
    await using _ = await stand.finding({ maxAttempts: 1, onExhausted: 'hold', backoffBaseMs: 0 })
    await stand.signal(({ kind }) => kind === 'failed')
    expect(await stand.states()).toEqual({ held: 1, pending: 2 })
    await stand.operator.requeue({ status: 'held' })
    await stand.deliveries(1)
    await stand.operator.requeue({ status: 'held' })
    await stand.signal((signal) => signal.kind === 'failed' && signal.event.id === '3')
    await stand.operator.requeue({ topic: 'orders' })
    expect(await stand.deliveries(3)).toEqual(['1', '2', '3'])
  })

  it('changes an event once, and leaves alone what is in another state', async () => {
    await using stand = await operatorStand()
    const [gone = ''] = await insertEvents(stand.pool, 1, failed)
    const others = [
      ...(await insertEvents(stand.pool, 1, { ...published, key: `'p'` })),
      ...(await insertEvents(stand.pool, 1, { attempts: '1', available_at: `now() + interval '1 hour'`, key: `'w'` })),
      '9007199254740993',
    ]
    const ids = [gone, ...others, gone]
    expect(await stand.operator.requeue({ ids })).toMatchObject({ matched: 1, changed: 1, skipped: 0, unmatched: 3 })
    expect(await stand.operator.requeue({ ids })).toMatchObject({ matched: 0, changed: 0, skipped: 0, unmatched: 4 })
    await using relay = stand.relay()
    await relay.drain()
    expect(stand.events.map(({ id, attempt, requeues }) => ({ id, attempt, requeues }))).toEqual([
      { id: gone, attempt: 1, requeues: 1 },
    ])
  })

  it('names a row by an id that no number holds', async () => {
    await using stand = await operatorStand()
    await stand.pool.query('alter sequence outbox.events_id_seq restart with 9007199254740992')
    await insertEvents(stand.pool, 3, failed)
    expect(await stand.operator.requeue({ ids: ['9007199254740993'] })).toMatchObject({ changed: 1 })
    const { rows } = await stand.pool.query(`select id from outbox.events where status = 'pending'`)
    expect(rows).toEqual([{ id: '9007199254740993' }])
  })

  it('begins to count anew and keeps the history', async () => {
    await using stand = await operatorStand(() => rejected)
    await stand.enqueue({ payload: 'x' })
    await using _ = await stand.finding({ maxAttempts: 2, backoffBaseMs: 0 })
    await stand.signal(({ kind }) => kind === 'failed')
    const before = stand.signals.length
    const { rows } = await stand.pool.query<{ event_id: string; last_error: string }>(
      'select event_id, last_error from outbox.events',
    )
    const [event] = rows
    expect(await stand.operator.requeue({ eventIds: [event?.event_id ?? ''] })).toMatchObject({ changed: 1 })
    await stand.signal((signal) => signal.kind === 'failed' && stand.signals.indexOf(signal) >= before)
    const history = await stand.pool.query('select requeues, attempt from outbox.failures order by at')
    expect(history.rows).toEqual([
      { requeues: 0, attempt: 1 },
      { requeues: 0, attempt: 2 },
      { requeues: 1, attempt: 1 },
      { requeues: 1, attempt: 2 },
    ])
    const again = await stand.pool.query(
      'select event_id, status, attempts, requeues, failed_at is not null failed from outbox.events',
    )
    expect(again.rows).toEqual([
      { event_id: event?.event_id, status: 'failed', attempts: 2, requeues: 1, failed: true },
    ])
  })

  it('waits for no locked row, and leaves what stands behind it in its key', async () => {
    await using stand = await operatorStand()
    const [, second = '', third = ''] = await insertEvents(stand.pool, 3, failed)
    await insertEvents(stand.pool, 1, { ...failed, key: `'other'`, payload: `'other'` })
    const person = await stand.pool.connect()
    await person.query('begin')
    await person.query('select 1 from outbox.events where id = $1 for update', [second])
    // One at a time, so that the third is in a batch of its own.
    expect(await stand.operator.requeue({ topic: 'orders' }, { batchSize: 1 })).toMatchObject({
      matched: 4,
      changed: 2,
      skipped: 2,
      unmatched: 0,
    })
    await stand.relay().drain()
    expect([...stand.delivered].sort()).toEqual(['1', 'other'])
    await person.query('rollback')
    person.release()
    const { rows } = await stand.pool.query(`select id from outbox.events where status = 'failed' order by id`)
    expect(rows).toEqual([{ id: second }, { id: third }])
    expect(await stand.operator.requeue({ topic: 'orders' })).toMatchObject({ changed: 2, skipped: 0 })
    await stand.relay().drain()
    expect(stand.delivered.slice(2)).toEqual(['2', '3'])
  })

  it('is interrupted between two transactions, and goes on when it is called again', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 50, failed)
    const interrupt = new AbortController()
    const report = await stand.operator.requeue(
      { topic: 'orders' },
      {
        batchSize: 10,
        signal: interrupt.signal,
        onProgress({ changed }) {
          if (changed === 20) interrupt.abort()
        },
      },
    )
    expect(report).toMatchObject({ finished: false, matched: 50, changed: 20, unmatched: 0 })
    const audit = await stand.pool.query('select sum(affected)::int done from outbox.audit where action = $1', [
      report.action,
    ])
    expect(audit.rows).toEqual([{ done: 20 }])
    expect(await stand.operator.requeue({ topic: 'orders' })).toMatchObject({
      finished: true,
      matched: 30,
      changed: 30,
    })
    await stand.relay().drain()
    expect(stand.delivered).toEqual(Array.from({ length: 50 }, (_, n) => String(n + 1)))
  })

  it('meets no event twice that fails again at once', async () => {
    await using stand = await operatorStand(() => ({ kind: 'permanent', cause: 'never' }))
    await insertEvents(stand.pool, 40, { ...failed, key: `n::text` })
    await using _ = await stand.finding()
    expect(await stand.operator.requeue({ status: 'failed' }, { batchSize: 2 })).toMatchObject({
      matched: 40,
      changed: 40,
    })
    const { rows } = await stand.pool.query('select distinct requeues from outbox.events')
    expect(rows).toEqual([{ requeues: 1 }])
  })
})
