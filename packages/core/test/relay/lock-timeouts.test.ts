import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { type RelayStand, relayStand } from '../support/relay-stand.ts'

const rejected = { kind: 'rejected', cause: new Error('no') } as const

/** As an administrator sets it for a role or a database: every session of the application has it from now on. */
async function setLockTimeout(stand: RelayStand, ms: number): Promise<void> {
  const administrator = new pg.Client({ connectionString: stand.url })
  await administrator.connect()
  const { rows } = await administrator.query<{ name: string }>('select quote_ident(current_database()) as name')
  await administrator.query(`alter database ${rows[0]?.name ?? ''} set lock_timeout = ${String(ms)}`)
  await administrator.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
  )
  await administrator.end()
}

describe('where the database gives every lock a timeout', () => {
  it('an outcome that meets a locked table is written later, whole and once', async () => {
    await using stand = await relayStand((event) => (event.key === 'bad' ? rejected : undefined))
    await setLockTimeout(stand, 1)
    await stand.enqueue(...Array.from({ length: 50 }, (_, n) => ({ key: `k${String(n)}`, payload: String(n) })), {
      key: 'bad',
      payload: 'bad',
    })
    const locker = await stand.pool.connect()
    await locker.query('begin')
    // Keeps every writer out and lets readers in, as creating an index does.
    await locker.query('lock table outbox.events in share mode')
    await using relay = stand.relay({ maxAttempts: 1 })
    await relay.start()
    await stand.deliveries(50)
    expect(
      await stand.signal((signal) => signal.kind === 'database' && signal.use === 'settle' && !signal.ok),
    ).toMatchObject({ cause: { code: '55P03' } })
    expect(relay.health().database.ok).toBe(false)
    await locker.query('commit')
    locker.release()
    await relay.drain()
    expect(stand.delivered).toHaveLength(50)
    expect(relay.counts()).toEqual({ published: 50, counted: 1, failed: 1 })
    expect(relay.health().database.ok).toBe(true)
    const { rows } = await stand.pool.query(
      'select status, attempts, count(*)::int from outbox.events group by 1, 2 order by 1',
    )
    expect(rows).toEqual([
      { status: 'failed', attempts: 1, count: 1 },
      { status: 'published', attempts: 0, count: 50 },
    ])
  })

  it('an event that somebody has locked delays only itself', async () => {
    await using stand = await relayStand()
    await setLockTimeout(stand, 1)
    await stand.enqueue(...Array.from({ length: 50 }, (_, n) => ({ key: `k${String(n)}`, payload: String(n) })))
    const locker = await stand.pool.connect()
    await locker.query('begin')
    await locker.query("select 1 from outbox.events where key = 'k7' for update")
    await using relay = stand.relay()
    await relay.start()
    await stand.signal(() => relay.counts().published === 49)
    expect(await stand.states()).toEqual({ pending: 1, published: 49 })
    await locker.query('rollback')
    locker.release()
    await stand.signal(() => relay.counts().published === 50)
    expect(stand.delivered).toHaveLength(50)
    expect(stand.signals.filter((signal) => signal.kind === 'database')).toEqual([])
  })

  it('a relay whose own row is locked renews its lease later, and comes back by itself', async () => {
    await using stand = await relayStand()
    await setLockTimeout(stand, 1)
    await using relay = stand.relay({ leaseMs: 900 })
    await relay.start()
    const locker = await stand.pool.connect()
    await locker.query('begin')
    await locker.query('select 1 from outbox.relays for update')
    expect(
      await stand.signal((signal) => signal.kind === 'database' && signal.use === 'ownership' && !signal.ok),
    ).toMatchObject({ cause: { code: '55P03' } })
    await locker.query('rollback')
    locker.release()
    await stand.signal((signal) => signal.kind === 'database' && signal.use === 'ownership' && signal.ok)
    await stand.enqueue({ payload: 'x' })
    expect(await stand.deliveries(1)).toEqual(['x'])
  })
})
