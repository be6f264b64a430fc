import { memoryPublisher } from '@inorder/relay-memory'
import { describe, expect, it } from 'vitest'
import { asking, observe } from './observed.ts'
import { json, openScene } from './scene.ts'

const soon = { signal: AbortSignal.timeout(25_000) }

describe('an outage of the broker, however long,', () => {
  it('fails nothing that was written during it; only what the broker refuses by itself fails, after its attempts', async () => {
    await using scene = await openScene()
    const keys = Array.from({ length: 50 }, (_, n) => `k${String(n)}`)
    for (const key of keys)
      await scene.enqueue(...Array.from({ length: 10 }, (_, n) => ({ topic: 'orders', key, payload: n })))
    await scene.enqueue({ topic: 'orders', key: 'poison', payload: 'never' })
    const outage = scene.broker.unavailable()
    const poison = scene.broker.reject({ key: 'poison' })
    let calls = 0
    const { relay, signals, until } = observe(scene, {
      publisher: asking(memoryPublisher(scene.broker), () => {
        calls += 1
        return undefined
      }),
      backoffBaseMs: 5,
      backoffCapMs: 10,
      breakerMinMs: 5,
      breakerMaxMs: 20,
    })
    // The relay connects before the outage: afterwards nothing but publish can tell.
    outage.end()
    await relay.start()
    await until(() => poison.hits > 0)
    const again = scene.broker.unavailable()
    await scene.enqueue({ topic: 'orders', key: 'during', payload: 'written in the outage' })
    await until(() => signals.some((signal) => signal.kind === 'breaker' && signal.open))
    const [from, at] = [calls, performance.now()]
    await until(() => calls >= from + 30)
    // After the first few steps the pause is 20 ms: one probe for each, whatever waits.
    expect(calls - from).toBeLessThanOrEqual((performance.now() - at) / 20 + 5)
    expect(await scene.count(`select count(*) from outbox.events where status in ('failed', 'held')`)).toBe(0)
    again.end()
    await scene.broker.until(({ count }) => count === 501, soon)
    await until(() => relay.counts().failed === 1)
    await relay.stop()
    for (const key of keys) {
      const delivered = scene.broker.deliveries.filter((delivery) => delivery.key === key).map(json)
      expect(delivered).toEqual(Array.from({ length: 10 }, (_, n) => n))
    }
    const { rows } = await scene.pool.query(
      `select key = 'poison' poison, status, attempts, count(*)::int from outbox.events group by 1, 2, 3 order by 1`,
    )
    expect(rows).toEqual([
      { poison: false, status: 'published', attempts: 0, count: 501 },
      { poison: true, status: 'failed', attempts: 10, count: 1 },
    ])
    expect(poison.hits).toBe(10)
  })
})

describe('an event that the broker rejects every time', () => {
  it('is not tried in a hot loop, and the relay is idle between its tries', async () => {
    await using scene = await openScene()
    const tries: number[] = []
    scene.broker.reject((event) => {
      if (event.key !== 'bad') return false
      tries.push(performance.now())
      return true
    })
    await scene.enqueue({ topic: 'orders', key: 'bad', payload: 1 })
    for (let key = 0; key < 10; key++)
      await scene.enqueue(
        ...Array.from({ length: 100 }, (_, n) => ({ topic: 'orders', key: `k${String(key)}`, payload: n })),
      )
    const { relay, finds, until } = observe(scene)
    await relay.start()
    await scene.broker.until(({ count }) => count === 1000, soon)
    await until(() => tries.length === 2)
    await until(() => tries.length === 3)
    const [first = 0, second = 0, third = 0] = tries
    // Half of 1 s and half of 2 s, as the shortest that the jitter can draw; a timer may be a millisecond early.
    expect(second - first).toBeGreaterThan(495)
    expect(third - second).toBeGreaterThan(995)
    const [from, at] = [finds(), performance.now()]
    await until(() => finds() >= from + 60)
    // 500 ms at the quick pace of 10 ms, then 5 a second.
    expect(performance.now() - at).toBeGreaterThan(1000)
    await relay.stop()
  })
})

describe('the wait before the next attempt', () => {
  const wait = `select extract(epoch from e.available_at - f.at)::float8 as wait
    from outbox.events e join outbox.failures f on f.event = e.id and f.attempt = e.attempts`

  async function waits(scene: Awaited<ReturnType<typeof openScene>>): Promise<number[]> {
    const { rows } = await scene.pool.query<{ wait: number }>(wait)
    return rows.map((row) => row.wait)
  }

  it('doubles from 1 s to 60 s, equally jittered, until the tenth attempt is the last, by the clock of the database', async () => {
    await using scene = await openScene()
    scene.broker.reject(() => true)
    await scene.enqueue(
      ...Array.from({ length: 200 }, (_, n) => ({ topic: 'orders', key: `k${String(n)}`, payload: n })),
    )
    const { relay, signals } = observe(scene)
    let [shortest, longest] = [0, 0]
    for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60, 60]) {
      await relay.drain()
      const waited = await waits(scene)
      expect(waited).toHaveLength(200)
      // The wait begins with the statement that writes it, and is compared with a time at the end of that statement.
      const writing = Math.max(...signals.map((signal) => (signal.kind === 'settled' ? signal.durationMs / 1000 : 0)))
      expect(Math.min(...waited)).toBeGreaterThan(seconds / 2 - writing)
      expect(Math.max(...waited)).toBeLessThanOrEqual(seconds)
      const mean = waited.reduce((sum, each) => sum + each, 0) / waited.length
      // Six standard deviations of the mean of 200 even draws.
      expect(Math.abs(mean - seconds * 0.75)).toBeLessThan(seconds * 0.065 + writing)
      shortest += seconds / 2
      longest += seconds
      await scene.pool.query('update outbox.events set available_at = now()')
    }
    expect([shortest, longest]).toEqual([121.5, 243])
    await relay.drain()
    expect(await scene.count(`select count(*) from outbox.events where status = 'failed' and attempts = 10`)).toBe(200)
  })

  it('follows the options of the relay that tries, without any change to what is stored', async () => {
    await using scene = await openScene()
    scene.broker.reject(() => true)
    await scene.enqueue({ topic: 'orders', key: 'k', payload: 1 })
    await scene.relay().drain()
    const [first = 0] = await waits(scene)
    expect(first).toBeLessThanOrEqual(1)
    await scene.pool.query('update outbox.events set available_at = now()')
    await scene.relay({ backoffBaseMs: 5000 }).drain()
    const [second = 0] = await waits(scene)
    expect(second).toBeGreaterThan(5 - 1)
    expect(second).toBeLessThanOrEqual(10)
  })

  it('can be 10 s to an hour with 6 attempts', async () => {
    await using scene = await openScene()
    scene.broker.reject(() => true)
    await scene.enqueue({ topic: 'orders', key: 'k', payload: 1 })
    const relay = scene.relay({ backoffBaseMs: 10_000, backoffCapMs: 3_600_000, maxAttempts: 6 })
    for (const seconds of [10, 20, 40, 80, 160]) {
      await relay.drain()
      const [waited = 0] = await waits(scene)
      expect(waited).toBeGreaterThan(seconds / 2 - 1)
      expect(waited).toBeLessThanOrEqual(seconds)
      await scene.pool.query('update outbox.events set available_at = now()')
    }
    await relay.drain()
    expect(await scene.count(`select count(*) from outbox.events where status = 'failed' and attempts = 6`)).toBe(1)
  })

  it('of none, which is base 0, is the next find and no tight loop inside one', async () => {
    await using scene = await openScene()
    const poison = scene.broker.reject(() => true)
    await scene.enqueue({ topic: 'orders', key: 'k', payload: 1 })
    const { relay, finds, until } = observe(scene, { backoffBaseMs: 0, backoffCapMs: 0, maxAttempts: 6 })
    await relay.start()
    await until(() => relay.counts().failed === 1)
    expect(poison.hits).toBe(6)
    expect(finds()).toBeGreaterThanOrEqual(6)
    await relay.stop()
  })
})
