import { describe, expect, it } from 'vitest'
import { gate } from '../support/gate.ts'
import { insertEvents, operatorStand } from '../support/operator-stand.ts'

describe('hold and release', () => {
  it('stop a key while its relay runs, and let it go on at once', async () => {
    await using stand = await operatorStand()
    await using _ = await stand.finding()
    expect(await stand.operator.hold({ topic: 'orders', key: 'k' }, { reason: 'a wrong price' })).toMatchObject({
      changed: true,
    })
    await stand.enqueue({ payload: 'held' }, { key: 'other', payload: 'free' })
    expect(await stand.deliveries(1)).toEqual(['free'])
    const seen = stand.signals.length
    await stand.signal((signal) => signal.kind === 'idle' && stand.signals.indexOf(signal) >= seen)
    expect(stand.delivered).toEqual(['free'])
    expect(await stand.operator.release({ topic: 'orders', key: 'k' })).toMatchObject({ changed: true })
    expect(await stand.deliveries(2)).toEqual(['free', 'held'])
  })

  it('stop a lane by its number, as it stands in the table', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 3, {})
    const { rows } = await stand.pool.query<{ lane: string }>('select distinct lane from outbox.events')
    const lane = rows[0]?.lane ?? ''
    await stand.operator.hold({ lane }, { reason: 'the test' })
    await stand.relay().drain()
    expect(stand.delivered).toEqual([])
    expect(await stand.operator.release({ topic: 'orders', key: 'k' })).toMatchObject({ changed: true })
    await stand.relay().drain()
    expect(stand.delivered).toEqual(['1', '2', '3'])
  })

  it('stop a topic while its relay runs, and let it go on with a heartbeat', async () => {
    await using stand = await operatorStand()
    await using _ = await stand.finding({ leaseMs: 900 })
    await stand.operator.hold({ topic: 'orders' }, { reason: 'the broker is being moved' })
    await stand.enqueue({ payload: '1' }, { payload: '2' }, { topic: 'bills', payload: 'free' })
    expect(await stand.deliveries(1)).toEqual(['free'])
    await stand.operator.release({ topic: 'orders' })
    expect(await stand.deliveries(3)).toEqual(['free', '1', '2'])
  })

  it('let what is in flight be published, and nothing behind it', async () => {
    const [inside, leave] = [gate(), gate()]
    await using stand = await operatorStand(async () => {
      inside.open()
      await leave.opened
      return undefined
    })
    await stand.enqueue({ payload: '1' }, { payload: '2' })
    await using relay = stand.relay({ maxRun: 1, sweepIntervalMs: 3_600_000 })
    await relay.start()
    await inside.opened
    await stand.operator.hold({ topic: 'orders', key: 'k' }, { reason: 'the test' })
    leave.open()
    await stand.deliveries(1)
    await relay.drain()
    expect(stand.delivered).toEqual(['1'])
    await stand.operator.release({ topic: 'orders', key: 'k' })
    expect(await stand.deliveries(2)).toEqual(['1', '2'])
  })

  it('say when there is nothing to do, and keep the first reason', async () => {
    await using stand = await operatorStand()
    const { operator } = stand
    expect(await operator.release({ topic: 'orders' })).toMatchObject({ changed: false })
    expect(await operator.hold({ topic: 'orders' }, { reason: 'first', dryRun: true })).toMatchObject({ changed: true })
    expect(await operator.hold({ topic: 'orders' }, { reason: 'first' })).toMatchObject({ changed: true })
    expect(await operator.hold({ topic: 'orders' }, { reason: 'second' })).toMatchObject({ changed: false })
    expect(await operator.hold({ topic: 'orders' }, { reason: 'second', dryRun: true })).toMatchObject({
      changed: false,
    })
    expect(await operator.hold({ topic: 'orders', key: 'k' }, { reason: 'third' })).toMatchObject({ changed: true })
    const { rows } = await stand.pool.query(
      'select topic, lane_topic, lane_key, reason, held_by from outbox.holds order by reason',
    )
    expect(rows).toEqual([
      { topic: 'orders', lane_topic: null, lane_key: null, reason: 'first', held_by: 'jane' },
      { topic: null, lane_topic: 'orders', lane_key: 'k', reason: 'third', held_by: 'jane' },
    ])
    expect(await operator.release({ topic: 'orders' }, { dryRun: true })).toMatchObject({ changed: true })
    expect(await operator.release({ topic: 'orders' })).toMatchObject({ changed: true })
    const audit = await stand.pool.query('select verb, filter, detail from outbox.audit order by id')
    expect(audit.rows).toEqual([
      { verb: 'hold', filter: { topic: 'orders' }, detail: { reason: 'first' } },
      { verb: 'hold', filter: { topic: 'orders', key: 'k' }, detail: { reason: 'third' } },
      { verb: 'release', filter: { topic: 'orders' }, detail: { reason: 'first', heldBy: 'jane' } },
    ])
    expect((await stand.pool.query('select holds_version from outbox.settings')).rows).toEqual([{ holds_version: '1' }])
  })

  it.each([
    {},
    { key: 'k' },
    { lane: '1', topic: 'orders' },
    { lane: '1', key: 'k' },
    { lane: '9223372036854775808' },
    { topic: '' },
  ])('refuse the target %o', async (target) => {
    await using stand = await operatorStand()
    await expect(stand.operator.hold(target as never, { reason: 'the test' })).rejects.toMatchObject({
      code: 'OPTIONS_INVALID',
    })
    await expect(stand.operator.release(target as never)).rejects.toMatchObject({ code: 'OPTIONS_INVALID' })
  })

  it('want a reason', async () => {
    await using stand = await operatorStand()
    await expect(stand.operator.hold({ topic: 'orders' }, {} as never)).rejects.toMatchObject({
      problems: [{ path: 'reason' }],
    })
  })
})
