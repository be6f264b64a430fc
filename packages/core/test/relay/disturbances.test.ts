import { startPostgres } from '@inorder/harness'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { fromPg } from '../../src/clients/from-pg.ts'
import { createOutbox } from '../../src/outbox.ts'
import { gate } from '../support/gate.ts'
import { relayStand } from '../support/relay-stand.ts'
import { testPublisher } from '../support/test-publisher.ts'

const hourMs = 3_600_000

describe('a key', () => {
  it('goes on when somebody deletes its event while it is in flight', async () => {
    const [entered, release] = [gate(), gate()]
    await using stand = await relayStand(async (event) => {
      if (event.headers['slow'] !== 'true') return undefined
      entered.open()
      await release.opened
      return undefined
    })
    await stand.enqueue({ payload: 'deleted', headers: { slow: true } })
    await using relay = stand.relay()
    await relay.start()
    await entered.opened
    await stand.pool.query('delete from outbox.events')
    release.open()
    await stand.enqueue({ payload: 'behind' })
    expect(await stand.deliveries(2)).toEqual(['deleted', 'behind'])
    await relay.drain()
  })

  it('with a backlog larger than all bytes in flight delays no other', async () => {
    const release = gate()
    const entered = gate()
    await using stand = await relayStand(async (event) => {
      if (event.key !== 'big') return undefined
      entered.open()
      await release.opened
      return undefined
    })
    await stand.enqueue(...Array.from({ length: 60 }, () => ({ key: 'big', payload: Buffer.alloc(10_000, 'x') })))
    await using relay = stand.relay({ maxInFlightBytes: 300_000, maxRunBytes: 20_000 })
    await relay.start()
    await entered.opened
    await stand.enqueue({ key: 'small', payload: 'small' })
    expect(await stand.deliveries(1)).toEqual(['small'])
    release.open()
    await stand.deliveries(61)
  })

  it('that is slow and has a long backlog delays no other topic, and no other key of its own', async () => {
    const release = gate()
    const entered = gate()
    await using stand = await relayStand(async (event) => {
      if (event.key !== 'slow') return undefined
      entered.open()
      await release.opened
      return undefined
    })
    await stand.enqueue(...Array.from({ length: 1000 }, () => ({ key: 'slow', payload: 'slow' })))
    await using relay = stand.relay({ maxInFlight: 100 })
    await relay.start()
    await entered.opened
    await stand.enqueue({ topic: 'other', key: 'a', payload: 'other topic' })
    expect(await stand.deliveries(1)).toEqual(['other topic'])
    await stand.enqueue({ key: 'b', payload: 'same topic' })
    expect(await stand.deliveries(2)).toEqual(['other topic', 'same topic'])
    release.open()
  })

  it('that is cold gets its turn while hot ones have more than the destination may have in flight', async () => {
    let cold: number | undefined
    let hot = 0
    await using stand = await relayStand((event) => {
      if (event.key === 'cold') cold = hot
      else hot += 1
      return undefined
    })
    for (let key = 0; key < 30; key++)
      await stand.enqueue(...Array.from({ length: 400 }, () => ({ key: `hot-${String(key)}`, payload: 'h' })))
    await using relay = stand.relay({ maxInFlight: 200, maxRun: 5 })
    await relay.start()
    await stand.signal(() => hot > 500)
    await stand.enqueue({ key: 'cold', payload: 'cold' })
    await stand.signal(() => cold !== undefined)
    // Each hot key may have had a few turns, but by far not its whole backlog of 12,000.
    expect(cold).toBeLessThan(9000)
  })
})

describe('a relay', () => {
  it('goes on whatever onSignal and onFailed throw', async () => {
    await using stand = await relayStand((event) =>
      event.headers['poison'] === 'true' ? { kind: 'permanent', cause: 'no' } : undefined,
    )
    await stand.enqueue({ key: 'bad', payload: 'poison', headers: { poison: true } }, { key: 'good', payload: 'good' })
    const relay = stand.relay({
      onSignal() {
        throw new Error('a bug in an observer')
      },
      onFailed: () => Promise.reject(new Error('a bug in the pager')),
    })
    await relay.start()
    expect(await stand.deliveries(1)).toEqual(['good'])
    expect(relay.health().observerFault).toEqual(new Error('a bug in an observer'))
    await relay.drain()
    await relay.stop()
    expect(await stand.states()).toEqual({ failed: 1, published: 1 })
  })

  it('asks for due events that are locked only now and then', async () => {
    await using stand = await relayStand()
    await stand.enqueue({ payload: 'later', delayMs: hourMs })
    await stand.pool.query("update outbox.events set available_at = now() - interval '1 s'")
    const locker = await stand.pool.connect()
    await locker.query('begin')
    await locker.query('select 1 from outbox.events for update')
    await using relay = stand.relay({ pollMinMs: 200 })
    await relay.start()
    const finds = (): number => stand.signals.filter(({ kind }) => kind === 'found').length
    const [from, at] = [finds(), performance.now()]
    await stand.signal(() => finds() >= from + 10)
    const took = performance.now() - at
    await locker.query('rollback')
    locker.release()
    // Ten finds of a relay that has nothing to do take well over a second, of one in a tight loop a few ms.
    expect(took).toBeGreaterThan(500)
    await stand.deliveries(1)
  })

  it('gives up the other slots while one hangs, and keeps that one', async () => {
    await using stand = await relayStand()
    await stand.enqueue({ payload: 'locked' })
    const locker = await stand.pool.connect()
    await locker.query('begin')
    await locker.query('select 1 from outbox.events for update')
    await using first = stand.relay({ leaseMs: 600 })
    await first.start()
    await stand.deliveries(1)
    await using second = stand.relay({ leaseMs: 600 })
    await second.start()
    await stand.signal(() => second.health().slots === 128)
    await stand.enqueue({ payload: 'behind the locked one' }, { key: 'another', payload: 'another' })
    expect((await stand.deliveries(2)).at(-1)).toBe('another')
    await locker.query('rollback')
    locker.release()
    expect((await stand.deliveries(3)).at(-1)).toBe('behind the locked one')
  })

  it('publishes on every version although events are scheduled for never or for always', async () => {
    await using server = await startPostgres({ major: 14 })
    const pool = new pg.Pool({ connectionString: await server.createDatabase(), max: 20 })
    pool.on('error', () => undefined)
    const outbox = createOutbox({ client: fromPg(pool) })
    await outbox.migrate()
    await pool.query(
      "insert into outbox.events (topic, payload, status, available_at) values ('t', 'never', 'scheduled', 'infinity'), ('t', 'always', 'scheduled', '-infinity')",
    )
    await outbox.transaction(pool, (tx) => outbox.enqueue(tx, { topic: 't', key: 'k', payload: Buffer.from('now') }))
    const delivered: string[] = []
    const publisher = testPublisher((run) => {
      for (const { payload } of run) delivered.push(Buffer.from(payload ?? []).toString())
      return { acknowledged: run.length }
    })
    await outbox.relay({ publisher }).drain()
    expect(delivered.sort()).toEqual(['always', 'now'])
    await outbox.close()
    await pool.end()
  })
})
