import { describe, expect, it } from 'vitest'
import { observe } from './observed.ts'
import { openScene, type Scene } from './scene.ts'

interface Reads {
  readonly scans: number
  readonly rows: number
}

/** What was read of the events so far. Sessions report at their end at the latest, so the relay must be gone. */
async function reads(scene: Scene): Promise<Reads> {
  const signal = AbortSignal.timeout(20_000)
  const others = `select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
    and backend_type = 'client backend' and query like '%inorder%'`
  while ((await scene.count(others)) > 0) signal.throwIfAborted()
  const { rows } = await scene.pool.query<{ scans: string; rows: string }>(
    `select seq_scan as scans, seq_tup_read + idx_tup_fetch as rows from pg_stat_user_tables
     where schemaname = 'outbox' and relname = 'events'`,
  )
  return { scans: Number(rows[0]?.scans), rows: Number(rows[0]?.rows) }
}

describe('rows that were published long ago', () => {
  it('cost a relay nothing, although nobody analysed the table since', { timeout: 120_000 }, async () => {
    await using scene = await openScene()
    await scene.pool.query('alter table outbox.events set (autovacuum_enabled = off)')
    await scene.pool.query(
      `insert into outbox.events (topic, key, payload, status, published_at)
       select 'orders', 'k' || n % 1000, '\\x31', 'published', now() from generate_series(1, 300000) n`,
    )
    await scene.enqueue(
      ...Array.from({ length: 100 }, (_, n) => ({ topic: 'orders', key: `k${String(n)}`, payload: n })),
    )
    const { relay, signals, finds, until } = observe(scene)
    const before = await reads(scene)
    await relay.start()
    await scene.broker.until(({ count }) => count === 100, { signal: AbortSignal.timeout(20_000) })
    await relay.drain()
    const idle = finds()
    await until(() => finds() >= idle + 20)
    await relay.stop()
    const after = await reads(scene)
    expect(signals.filter(({ kind }) => kind === 'database')).toEqual([])
    expect(after.scans - before.scans).toBe(0)
    // A hundred events are found, read on, settled; nothing like the 300,000 others.
    expect(after.rows - before.rows).toBeLessThan(5000)
    expect(after.rows - before.rows).toBeGreaterThan(0)
  })
})
