import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { gate } from '../support/gate.ts'
import { failed, insertEvents, operatorStand, published } from '../support/operator-stand.ts'

/** The plan that is taken where any index will do. */
async function explain(pool: pg.Pool, statement: string): Promise<{ text: string }> {
  const client = await pool.connect()
  await client.query('begin')
  await client.query('set local enable_seqscan = off')
  const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain ${statement}`)
  await client.query('rollback')
  client.release()
  return { text: rows.map((row) => row['QUERY PLAN']).join('\n') }
}

const rejected = { kind: 'rejected', cause: new Error('the broker says no') } as const
const unknown = { kind: 'unknown', cause: new Error('the broker did not answer') } as const
const pausing = { backoffBaseMs: 3_600_000, backoffCapMs: 3_600_000 }

describe('discard', () => {
  it('of the head of a blocked key lets the key go on at once', async () => {
    await using stand = await operatorStand((event) => (event.id === '1' ? rejected : undefined))
    await stand.enqueue({ payload: 'poison' }, { payload: '2' }, { payload: '3' })
    await using _ = await stand.finding({ backoffBaseMs: 3_600_000 })
    expect(stand.delivered).toEqual([])
    expect(await stand.operator.discard({ ids: ['1'] })).toMatchObject({ matched: 1, changed: 1, skipped: 0 })
    expect(await stand.deliveries(2)).toEqual(['2', '3'])
  })

  it.each(['unknown', 'transient'] as const)(
    'of a head that waits in memory, because its outcome is %s, lets the key go on at once',
    async (kind) => {
      await using stand = await operatorStand((event) =>
        event.id === '1' ? { kind, cause: new Error('not yet'), retryAfterMs: 3_600_000 } : undefined,
      )
      await stand.enqueue({ payload: 'poison' }, { payload: '2' }, { payload: '3' })
      await using relay = stand.relay({ sweepIntervalMs: 3_600_000 })
      await relay.start()
      await stand.signal((signal) => signal.kind === 'published' && signal.failure?.kind === kind)
      expect(await stand.operator.discard({ ids: ['1'] })).toMatchObject({ changed: 1 })
      expect(await stand.deliveries(2)).toEqual(['2', '3'])
    },
  )

  it('of a held event lets the key go on at once', async () => {
    await using stand = await operatorStand((event) => (event.id === '1' ? rejected : undefined))
    await stand.enqueue({ payload: 'poison' }, { payload: '2' })
    await using _ = await stand.finding({ maxAttempts: 1, onExhausted: 'hold' })
    await stand.operator.discard({ status: 'held' })
    expect(await stand.deliveries(1)).toEqual(['2'])
  })

  it('lets a key go on whose next event somebody has locked, as soon as that is free', async () => {
    await using stand = await operatorStand((event) => (event.id === '1' ? rejected : undefined))
    await stand.enqueue({ payload: 'poison' }, { payload: '2' }, { payload: '3' })
    await using _ = await stand.finding({ backoffBaseMs: 3_600_000 })
    const person = await stand.pool.connect()
    await person.query('begin')
    await person.query('select 1 from outbox.events where id = 2 for update')
    // The third event is stamped in place of the second, and names their key as well.
    await stand.operator.discard({ ids: ['1'] })
    expect(await stand.deliveries(2)).toEqual(['2', '3'])
    await person.query('rollback')
    person.release()
  })

  it('of an event that is being published leaves its key going, and the event may arrive once', async () => {
    const [inside, leave] = [gate(), gate()]
    await using stand = await operatorStand(async (event) => {
      if (event.id !== '1') return undefined
      inside.open()
      await leave.opened
      return undefined
    })
    await stand.enqueue({ payload: '1' }, { payload: '2' })
    await using relay = stand.relay({ sweepIntervalMs: 3_600_000, maxRun: 1 })
    await relay.start()
    await inside.opened
    expect(await stand.operator.discard({ ids: ['1'] })).toMatchObject({ changed: 1 })
    leave.open()
    expect(await stand.deliveries(2)).toEqual(['1', '2'])
    await relay.drain()
    expect(stand.delivered).toEqual(['1', '2'])
    expect(await stand.states()).toEqual({ published: 1 })
  })

  it('of an event that is being refused leaves its key going', async () => {
    const [inside, leave] = [gate(), gate()]
    await using stand = await operatorStand(async (event) => {
      if (event.id !== '1') return undefined
      inside.open()
      await leave.opened
      return rejected
    })
    await stand.enqueue({ payload: '1' }, { payload: '2' })
    await using relay = stand.relay({ sweepIntervalMs: 3_600_000, backoffBaseMs: 3_600_000 })
    await relay.start()
    await inside.opened
    await stand.operator.discard({ ids: ['1'] })
    leave.open()
    expect(await stand.deliveries(1)).toEqual(['2'])
    await relay.drain()
    expect((await stand.pool.query('select 1 from outbox.failures')).rowCount).toBe(0)
  })

  it('of an event whose outcome turns out to be unknown lets the key go on at once', async () => {
    const [inside, leave] = [gate(), gate()]
    await using stand = await operatorStand(async (event) => {
      if (event.id !== '1') return undefined
      inside.open()
      await leave.opened
      return unknown
    })
    await stand.enqueue({ payload: '1' }, { payload: '2' })
    await using relay = stand.relay({ sweepIntervalMs: 3_600_000, ...pausing })
    await relay.start()
    await inside.opened
    const before = stand.signals.length
    await stand.operator.discard({ ids: ['1'] })
    // The relay hears of the discard while the outcome is still on its way.
    await stand.signal(
      (signal) => signal.kind === 'found' && signal.lanes > 0 && stand.signals.indexOf(signal) >= before,
    )
    leave.open()
    expect(await stand.deliveries(1)).toEqual(['2'])
  })

  it('removes what is not published with its failures, and the audit keeps the ids', async () => {
    await using stand = await operatorStand()
    const ids = [
      ...(await insertEvents(stand.pool, 2, failed)),
      ...(await insertEvents(stand.pool, 1, { ...failed, status: `'held'`, key: `'h'` })),
      ...(await insertEvents(stand.pool, 1, { status: `'scheduled'`, available_at: `now() + interval '1 hour'` })),
      ...(await insertEvents(stand.pool, 1, {})),
    ]
    const [kept = ''] = await insertEvents(stand.pool, 1, published)
    await stand.pool.query(
      `insert into outbox.failures (event, at, requeues, attempt, relay, outcome, error) select id, now(), 0, 1, 'r', 'rejected', 'no' from outbox.events`,
    )
    const { rows } = await stand.pool.query<{ event_id: string }>(
      'select event_id from outbox.events where id <> $1 order by id',
      [kept],
    )
    const report = await stand.operator.discard({ ids: [...ids, kept] })
    expect(report).toMatchObject({ matched: 5, changed: 5, unmatched: 1 })
    expect(await stand.states()).toEqual({ published: 1 })
    expect((await stand.pool.query('select event from outbox.failures')).rows).toEqual([{ event: kept }])
    const audit = await stand.pool.query(
      'select actor, verb, affected, filter, detail from outbox.audit where action = $1',
      [report.action],
    )
    expect(audit.rows).toEqual([
      {
        actor: 'jane',
        verb: 'discard',
        affected: '5',
        filter: { ids: [...ids, kept] },
        detail: { ids, eventIds: rows.map(({ event_id }) => event_id) },
      },
    ])
  })

  it('lists ids in the audit in their numeric order, and keeps apart those that no number could', async () => {
    await using stand = await operatorStand()
    const ids = ['9', '10', '11', '99', '100', '101', '9007199254740992', '9007199254740993', '9007199254740994']
    await stand.pool.query(
      `insert into outbox.events (id, topic, key, status) overriding system value select id, 'orders', 'k', 'failed' from unnest($1::bigint[]) id`,
      [[...ids].reverse()],
    )
    await stand.operator.discard({ status: 'failed', topic: 'orders' })
    const { rows } = await stand.pool.query<{ ids: string[] }>(
      `select detail -> 'ids' ids from outbox.audit where verb = 'discard'`,
    )
    expect(rows.map((row) => row.ids)).toEqual([ids])
  })

  it('can be looked up by event id, through an index', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 5000, failed)
    const { rows } = await stand.pool.query<{ event_id: string }>('select event_id from outbox.events where id = 4321')
    await stand.operator.discard({ status: 'failed' })
    await stand.pool.query('analyze outbox.audit')
    const where = `verb = 'discard' and detail @> jsonb_build_object('eventIds', jsonb_build_array($1::text))`
    const found = await stand.pool.query(
      `select detail -> 'ids' @> '["4321"]' there from outbox.audit where ${where}`,
      [rows[0]?.event_id],
    )
    expect(found.rows).toEqual([{ there: true }])
    const { text } = await explain(stand.pool, `select 1 from outbox.audit where ${where.replace('$1', `'x'`)}`)
    expect(text).toContain('discarded')
  })

  it('wants to be told which states are meant, unless the events are named', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 1, failed)
    await expect(stand.operator.discard({ topic: 'orders' })).rejects.toMatchObject({
      code: 'OPTIONS_INVALID',
      problems: [{ path: 'filter.status' }],
    })
    expect(await stand.operator.discard({ topic: 'orders', status: ['pending', 'failed'] })).toMatchObject({
      changed: 1,
    })
  })
})
