import { describe, expect, it } from 'vitest'
import { fromPg } from '../../src/clients/from-pg.ts'
import { createOutbox } from '../../src/outbox.ts'
import { aroundStatements } from '../support/around-statements.ts'
import { gate } from '../support/gate.ts'
import { failed, insertEvents, operatorStand } from '../support/operator-stand.ts'
import { lockedRow, lookedAgain, stopAtAudit } from '../support/stopped-verb.ts'

// What happens in the middle of a verb.

const rejected = { kind: 'rejected', cause: new Error('the broker says no') } as const
const slow = { backoffBaseMs: 3_600_000, backoffCapMs: 3_600_000 }

describe('an event that commits while what blocks its key is taken away goes out,', () => {
  it('when the head is discarded', async () => {
    await using stand = await operatorStand((event) => (event.id === '1' ? rejected : undefined))
    await stand.enqueue({ payload: 'poison' })
    await using _ = await stand.finding(slow)
    const audit = await stopAtAudit(stand)
    const discarding = stand.operator.discard({ ids: ['1'] })
    await audit.reached()
    await stand.enqueue({ payload: '2' })
    await lookedAgain(stand)
    expect(stand.delivered).toEqual([])
    await audit.letGo()
    expect(await discarding).toMatchObject({ changed: 1 })
    expect(await stand.deliveries(1)).toEqual(['2'])
  })

  it('when a key is released', async () => {
    await using stand = await operatorStand()
    await using _ = await stand.finding()
    await stand.operator.hold({ topic: 'orders', key: 'k' }, { reason: 'the test' })
    const audit = await stopAtAudit(stand)
    const releasing = stand.operator.release({ topic: 'orders', key: 'k' })
    await audit.reached()
    await stand.enqueue({ payload: '1' })
    await lookedAgain(stand)
    expect(stand.delivered).toEqual([])
    await audit.letGo()
    await releasing
    expect(await stand.deliveries(1)).toEqual(['1'])
  })

  it('when a topic is released', async () => {
    await using stand = await operatorStand()
    await using _ = await stand.finding({ leaseMs: 900 })
    await stand.operator.hold({ topic: 'orders' }, { reason: 'the test' })
    const audit = await stopAtAudit(stand)
    const releasing = stand.operator.release({ topic: 'orders' })
    await audit.reached()
    await stand.enqueue({ payload: '1' }, { payload: '2' })
    await lookedAgain(stand)
    expect(stand.delivered).toEqual([])
    await audit.letGo()
    await releasing
    expect(await stand.deliveries(2)).toEqual(['1', '2'])
  })

  it('when an untried event of a held topic leaves a lane that both share', async () => {
    await using stand = await operatorStand()
    await using _ = await stand.finding()
    await stand.operator.hold({ topic: 'held' }, { reason: 'the test' })
    await stand.enqueue({ topic: 'held', ordering: 'total', payload: '1' })
    const audit = await stopAtAudit(stand)
    const rescheduling = stand.operator.reschedule({ topic: 'held' }, { at: new Date(Date.now() + 3_600_000) })
    await audit.reached()
    await stand.enqueue({ topic: 'free', ordering: 'total', payload: '2' })
    await lookedAgain(stand)
    await audit.letGo()
    await rescheduling
    expect(await stand.deliveries(1)).toEqual(['2'])
  })
})

describe('a relay and an operator at the same event', () => {
  it('may acknowledge it while it is being discarded: the key goes on', async () => {
    const [inside, leave] = [gate(), gate()]
    await using stand = await operatorStand(async (event) => {
      if (event.id !== '1') return undefined
      inside.open()
      await leave.opened
      return undefined
    })
    await stand.enqueue({ payload: '1' }, { payload: '2' }, { payload: '3' })
    await using relay = stand.relay({ sweepIntervalMs: 3_600_000 })
    await relay.start()
    await inside.opened
    const audit = await stopAtAudit(stand)
    const discarding = stand.operator.discard({ ids: ['1'] })
    await audit.reached()
    leave.open()
    await stand.deliveries(3)
    await stand.signal(({ kind }) => kind === 'settled')
    await audit.letGo()
    expect(await discarding).toMatchObject({ changed: 1 })
    await relay.drain()
    expect(stand.delivered).toEqual(['1', '2', '3'])
    expect(await stand.states()).toEqual({ published: 2 })
  })

  it('may settle it first: it is not discarded, and the report says so', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 2, {})
    const settling = await lockedRow(stand.pool, '1')
    await settling.query(`update outbox.events set status = 'published', published_at = clock_timestamp() where id = 1`)
    let looks = 0
    const client = aroundStatements(fromPg(stand.pool), async ({ text }, run) => {
      const verb = text.includes('delete from')
      if (verb && looks === 1) await settling.query('commit')
      if (verb) looks += 1
      return run()
    })
    await using outbox = createOutbox({ client })
    const operator = outbox.operator({ actor: 'jane' })
    expect(await operator.discard({ ids: ['1', '2'] })).toMatchObject({
      matched: 2,
      changed: 1,
      skipped: 0,
      unmatched: 1,
    })
    settling.release()
    expect(looks).toBe(2)
    expect(await stand.states()).toEqual({ published: 1 })
    const { rows } = await stand.pool.query('select detail -> $1 ids from outbox.audit', ['ids'])
    expect(rows).toEqual([{ ids: ['2'] }])
  })

  it('may acknowledge it after it was requeued: that was another life, and it is published again', async () => {
    const [inside, leave] = [gate(), gate()]
    await using stand = await operatorStand(async (event) => {
      if (event.requeues > 0) return undefined
      inside.open()
      await leave.opened
      return undefined
    })
    await stand.enqueue({ payload: '1' })
    await using relay = stand.relay({ sweepIntervalMs: 3_600_000 })
    await relay.start()
    await inside.opened
    // As a relay does that took the slot over while this one was stalled.
    await stand.pool.query(`update outbox.events set status = 'failed', attempts = 10, failed_at = now()`)
    await stand.operator.requeue({ ids: ['1'] })
    leave.open()
    await stand.deliveries(2)
    await relay.drain()
    expect(stand.events.map(({ requeues }) => requeues)).toEqual([0, 1])
    const { rows } = await stand.pool.query('select status, attempts, requeues from outbox.events')
    expect(rows).toEqual([{ status: 'published', attempts: 0, requeues: 1 }])
  })

  it('may publish what is being rescheduled: it arrives, and again at its time', async () => {
    const [inside, leave] = [gate(), gate()]
    await using stand = await operatorStand(async (_, tries) => {
      inside.open()
      if (tries === 1) await leave.opened
      return undefined
    })
    await stand.enqueue({ payload: '1' })
    await using relay = stand.relay({ sweepIntervalMs: 3_600_000 })
    await relay.start()
    await inside.opened
    await stand.operator.reschedule({ ids: ['1'] }, { at: new Date(Date.now() + 3_600_000) })
    leave.open()
    await stand.deliveries(1)
    await relay.drain()
    expect(await stand.states()).toEqual({ scheduled: 1 })
    await stand.operator.reschedule({ ids: ['1'] }, { at: 'now' })
    await stand.deliveries(2)
    await relay.drain()
    expect(await stand.states()).toEqual({ published: 1 })
  })

  it('may put it in line at the same moment: it is published once', async () => {
    await using stand = await operatorStand()
    await using relay = await stand.finding()
    for (let round = 1; round <= 10; round++) {
      await stand.enqueue({ key: String(round), payload: String(round), delayMs: 20 })
      await stand.operator.reschedule({ topic: 'orders' }, { at: 'now' })
    }
    await stand.deliveries(10)
    await relay.drain()
    expect(new Set(stand.delivered).size).toBe(10)
    expect(stand.delivered).toHaveLength(10)
  })
})

describe('a row that is locked for a moment', () => {
  it('is taken in a second look, in its order', async () => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 6, failed)
    const person = await lockedRow(stand.pool, '1')
    let looks = 0
    const client = aroundStatements(fromPg(stand.pool), async ({ text }, run) => {
      const verb = text.includes("set status = 'pending'")
      if (verb && looks === 3) await person.query('rollback')
      if (verb) looks += 1
      return run()
    })
    await using outbox = createOutbox({ client })
    const operator = outbox.operator({ actor: 'jane' })
    const report = await operator.requeue({ topic: 'orders' }, { batchSize: 2 })
    person.release()
    expect([looks, report]).toMatchObject([6, { changed: 6, skipped: 0 }])
    await stand.relay().drain()
    expect(stand.delivered).toEqual(['1', '2', '3', '4', '5', '6'])
  })

  it('delays the key that a discard opened by no more than the lock', async () => {
    await using stand = await operatorStand((event) => (event.id === '1' ? rejected : undefined))
    await stand.enqueue({ payload: 'poison' }, { payload: '2' })
    await using _ = await stand.finding(slow)
    const person = await lockedRow(stand.pool, '2')
    let stamps = 0
    const client = aroundStatements(fromPg(stand.pool), async ({ text }, run) => {
      const stamp = text.includes('missed')
      if (stamp && stamps === 2) await person.query('rollback')
      if (stamp) stamps += 1
      return run()
    })
    await using outbox = createOutbox({ client })
    await outbox.operator({ actor: 'jane' }).discard({ ids: ['1'] })
    person.release()
    expect(stamps).toBe(3)
    expect(await stand.deliveries(1)).toEqual(['2'])
  })
})
