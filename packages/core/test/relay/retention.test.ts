import { describe, expect, it } from 'vitest'
import { aroundStatements } from '../support/around-statements.ts'
import { type RelayStand, relayStand } from '../support/relay-stand.ts'

async function count({ pool }: RelayStand, table: 'events' | 'failures'): Promise<number> {
  const { rows } = await pool.query<{ n: number }>(`select count(*)::int n from outbox.${table}`)
  return rows[0]?.n ?? 0
}

/** Twice rejected, then taken; `bad` is never taken. */
const moody = (): Promise<RelayStand> =>
  relayStand(({ key }, tries) => {
    if (key === 'bad') return { kind: 'permanent', cause: new Error('never') }
    return key === 'moody' && tries < 3 ? { kind: 'rejected', cause: new Error('not now') } : undefined
  })

describe('a published event', () => {
  it('stays for its retention and is purged afterwards, while failed and scheduled ones stay', async () => {
    await using stand = await moody()
    const many = Array.from({ length: 1500 }, (_, n) => ({ key: `k${String(n % 7)}`, payload: String(n) }))
    await stand.enqueue(
      ...many,
      { key: 'bad', payload: 'bad' },
      { key: 'moody', payload: 'm' },
      { key: 'later', payload: 'later', delayMs: 3_600_000 },
    )
    await using relay = stand.relay({ backoffBaseMs: 1, retainPublishedMs: 600_000, leaseMs: 600 })
    await relay.start()
    await stand.deliveries(1501)
    await stand.signal((signal) => signal.kind === 'failed')
    await relay.stop()
    await stand.pool.query(
      "update outbox.events set published_at = now() - interval '11 minutes' where id <= 1100 or key = 'moody'",
    )
    expect(await count(stand, 'failures')).toBe(3)

    // A short retention is looked after every second; what is to stay lies far away from it, on a slow machine too.
    await using impatient = stand.relay({ retainPublishedMs: 9_000, leaseMs: 600 })
    await stand.pool.query(
      "update outbox.events set published_at = now() + interval '1 hour' where id between 1101 and 1500",
    )
    await impatient.start()
    const purged = (): number =>
      stand.signals.reduce((sum, each) => sum + (each.kind === 'purged' ? each.events : 0), 0)
    await stand.signal(() => purged() >= 1101)
    expect(await stand.states()).toEqual({ published: 400, failed: 1, scheduled: 1 })
    expect(await count(stand, 'failures')).toBe(1)
  })

  it('is purged behind the ones that are gone already, and each look begins at the oldest again', async () => {
    const from: unknown[] = []
    await using stand = await relayStand(undefined, {}, (client) =>
      aroundStatements(client, (statement, run) => {
        if (statement.text.includes('delete from') && statement.values.length === 4) from.push(statement.values[2])
        return run()
      }),
    )
    await stand.pool.query(
      `insert into outbox.events (topic, status, published_at)
       select 'orders', 'published', now() - interval '1 hour' + n * interval '1 second' from generate_series(1, 2500) n`,
    )
    await using relay = stand.relay({ retainPublishedMs: 9_000, leaseMs: 600 })
    await relay.start()
    await stand.signal(() => from.length >= 4)
    expect(from.slice(0, 4)).toEqual([null, expect.any(String), expect.any(String), null])
    expect(from[2]).not.toBe(from[1])
    expect(await stand.states()).toEqual({})
  })

  it('is deleted when it is acknowledged if none is to be retained, with the history of its failures', async () => {
    await using stand = await moody()
    await stand.enqueue(
      { key: 'a', payload: 'a' },
      { key: 'b', payload: 'b' },
      { key: 'moody', payload: 'm' },
      { key: 'moody', payload: 'm' },
      { key: 'bad', payload: 'bad' },
    )
    await using relay = stand.relay({ backoffBaseMs: 1, retainPublishedMs: 0 })
    await relay.start()
    await stand.deliveries(4)
    await relay.stop()
    expect(await stand.states()).toEqual({ failed: 1 })
    expect(await count(stand, 'failures')).toBe(1)
    expect(relay.counts()).toEqual({ published: 4, counted: 5, failed: 1 })
  })

  it('whose row somebody else had locked is deleted once it is free', async () => {
    await using stand = await relayStand()
    await stand.enqueue({ key: 'a', payload: 'a' }, { key: 'b', payload: 'b' })
    const someone = await stand.pool.connect()
    await someone.query('begin')
    await someone.query("select from outbox.events where key = 'a' for update")
    await using relay = stand.relay({ retainPublishedMs: 0 })
    await relay.start()
    await stand.deliveries(2)
    await stand.signal((signal) => signal.kind === 'settled' && signal.published === 1)
    expect(await stand.states()).toEqual({ pending: 1 })
    await someone.query('commit')
    someone.release()
    await relay.stop()
    expect(await stand.states()).toEqual({})
    expect(stand.delivered.sort()).toEqual(['a', 'b'])
  })
})
