import { describe, expect, it } from 'vitest'
import { insertEvents, operatorStand, published } from '../support/operator-stand.ts'

const rejected = { kind: 'rejected', cause: new Error('the broker says no') } as const
const inAnHour = (): Date => new Date(Date.now() + 3_600_000)

describe('reschedule', () => {
  it('puts a scheduled event in line at once', async () => {
    await using stand = await operatorStand()
    await stand.enqueue({ payload: 'later', delayMs: 3_600_000 })
    await using _ = await stand.finding()
    expect(await stand.operator.reschedule({ topic: 'orders' }, { at: 'now' })).toMatchObject({ changed: 1 })
    expect(await stand.deliveries(1)).toEqual(['later'])
  })

  it('tries an event again at once that waits for its retry, and its key goes on behind it', async () => {
    await using stand = await operatorStand((_, tries) => (tries === 1 ? rejected : undefined))
    await stand.enqueue({ payload: '1' })
    await using _ = await stand.finding({ backoffBaseMs: 3_600_000, backoffCapMs: 3_600_000 })
    await stand.enqueue({ payload: '2' })
    await stand.operator.reschedule({ topic: 'orders' }, { at: 'now' })
    await stand.deliveries(1)
    await stand.signal((signal) => signal.kind === 'settled' && signal.counted === 1 && stand.delivered.length === 1)
    await stand.operator.reschedule({ topic: 'orders' }, { at: 'now' })
    expect(await stand.deliveries(2)).toEqual(['1', '2'])
    const { rows } = await stand.pool.query('select attempts from outbox.events order by id')
    expect(rows).toEqual([{ attempts: 1 }, { attempts: 1 }])
  })

  it('takes an untried event out of line until its time, and lets its key go on', async () => {
    await using stand = await operatorStand()
    await stand.operator.hold({ topic: 'orders' }, { reason: 'the test' })
    await stand.enqueue({ payload: '1' }, { payload: '2' })
    expect(await stand.operator.reschedule({ ids: ['1'] }, { at: inAnHour() })).toMatchObject({ changed: 1 })
    expect(await stand.states()).toEqual({ scheduled: 1, pending: 1 })
    await stand.operator.release({ topic: 'orders' })
    await stand.relay().drain()
    expect(stand.delivered).toEqual(['2'])
    await stand.operator.reschedule({ ids: ['1'] }, { at: new Date(Date.now() - 1000) })
    await stand.relay().drain()
    expect(stand.delivered).toEqual(['2', '1'])
  })

  it('lets what stood behind an event of a held topic go on, where both share a lane', async () => {
    await using stand = await operatorStand()
    await using _ = await stand.finding()
    await stand.operator.hold({ topic: 'held' }, { reason: 'the test' })
    await stand.enqueue({ topic: 'held', ordering: 'total', payload: '1' })
    await stand.enqueue({ topic: 'free', ordering: 'total', payload: '2' })
    const found = stand.signals.length
    await stand.signal((signal) => signal.kind === 'idle' && stand.signals.indexOf(signal) >= found)
    expect(stand.delivered).toEqual([])
    await stand.operator.reschedule({ topic: 'held' }, { at: inAnHour() })
    expect(await stand.deliveries(1)).toEqual(['2'])
  })

  it('keeps the key of a tried event waiting until the new time', async () => {
    await using stand = await operatorStand((_, tries) => (tries === 1 ? rejected : undefined))
    await stand.enqueue({ payload: '1' }, { payload: '2' })
    await using relay = await stand.finding({ backoffBaseMs: 3_600_000, backoffCapMs: 3_600_000 })
    await stand.operator.reschedule({ ids: ['1'] }, { at: inAnHour() })
    const { rows } = await stand.pool.query(
      'select status, attempts, available_at > now() waits from outbox.events order by id',
    )
    expect(rows).toEqual([
      { status: 'pending', attempts: 1, waits: true },
      { status: 'pending', attempts: 0, waits: null },
    ])
    await relay.drain()
    expect(stand.delivered).toEqual([])
  })

  it('leaves everything else as it is', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 1, published)
    await insertEvents(stand.pool, 1, { status: `'failed'`, failed_at: 'now()' })
    await insertEvents(stand.pool, 1, { status: `'held'`, failed_at: 'now()' })
    await insertEvents(stand.pool, 1, { key: `'in line'` })
    const before = await stand.contents()
    const ids = ['1', '2', '3', '4']
    expect(await stand.operator.reschedule({ ids }, { at: 'now' })).toMatchObject({
      changed: 0,
      skipped: 0,
      unmatched: 4,
    })
    expect(await stand.contents()).toEqual(before)
    await expect(stand.operator.reschedule({ ids }, { at: 'tomorrow' } as never)).rejects.toMatchObject({
      code: 'OPTIONS_INVALID',
      problems: [{ path: 'at' }],
    })
  })
})
