import { describe, expect, it } from 'vitest'
import { observe } from './observed.ts'
import { json, openScene } from './scene.ts'

/** The middle one, which a machine that was busy for a moment does not change. */
function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

describe('a wall of events that the broker rejects every time', () => {
  it('keeps nobody waiting behind it, and costs no more the longer it stands', async () => {
    await using scene = await openScene()
    scene.broker.reject(({ key }) => key?.startsWith('bad') === true)
    const bad = Array.from({ length: 30 }, (_, n) => `bad-${String(n)}`)
    for (const key of bad)
      await scene.enqueue(...Array.from({ length: 50 }, (_, n) => ({ topic: 'orders', key, payload: n })))
    // Ten arrivals to a find, and all thirty heads due again and again: oldest first, nothing else would have a chance.
    const { relay, signals, finds, until } = observe(scene, {
      findLimit: 10,
      maxAttempts: Infinity,
      backoffBaseMs: 20,
      backoffCapMs: 20,
    })
    await relay.start()
    await until(() => relay.counts().counted > 100)
    const before = finds()
    await scene.enqueue(
      ...Array.from({ length: 5 }, (_, n) => ({ topic: 'orders', key: `ok-${String(n)}`, payload: n })),
    )
    const committed = finds()
    await scene.broker.until(({ count }) => count === 5, { signal: AbortSignal.timeout(20_000) })
    expect(finds() - committed).toBeLessThanOrEqual(4)
    expect(committed).toBeGreaterThanOrEqual(before)

    await until(() => finds() >= committed + 60)
    const durations = signals.flatMap((signal) => (signal.kind === 'found' ? [signal.durationMs] : []))
    const [first, last] = [durations.slice(0, 25), durations.slice(-25)]
    expect(median(last)).toBeLessThan(3 * median(first) + 10)
    expect(
      await scene.count(
        'select max(attempts) from outbox.events where id not in (select min(id) from outbox.events group by key)',
      ),
    ).toBe(0)
    await relay.stop()
  })
})

describe('the flood of one key', () => {
  it('keeps another one waiting for a find or two, and stays in order', async () => {
    await using scene = await openScene()
    const { relay, finds } = observe(scene, { findLimit: 10 })
    scene.broker.setLatency({ perEventMs: 1 })
    await relay.start()
    await scene.enqueue(...Array.from({ length: 1000 }, (_, n) => ({ topic: 'orders', key: 'flood', payload: n })))
    await scene.broker.until(({ count }) => count > 0, { signal: AbortSignal.timeout(20_000) })
    await scene.enqueue({ topic: 'orders', key: 'small', payload: 'small' })
    const committed = finds()
    await scene.broker.until(({ deliveries }) => deliveries.some(({ key }) => key === 'small'), {
      signal: AbortSignal.timeout(20_000),
    })
    expect(finds() - committed).toBeLessThanOrEqual(2)
    const ahead = scene.broker.deliveries.findIndex(({ key }) => key === 'small')
    expect(ahead).toBeLessThan(900)
    await relay.drain()
    expect(scene.broker.deliveries.filter(({ key }) => key === 'flood').map(json)).toEqual(
      Array.from({ length: 1000 }, (_, n) => n),
    )
    await relay.stop()
  })

  it('over a thousand keys keeps another one waiting no longer: what came later is found at once', async () => {
    await using scene = await openScene()
    const { relay, finds } = observe(scene, { findLimit: 10 })
    await relay.start()
    await scene.enqueue(
      ...Array.from({ length: 1000 }, (_, n) => ({ topic: 'orders', key: `flood-${String(n)}`, payload: n })),
    )
    await scene.enqueue({ topic: 'orders', key: 'small', payload: 'small' })
    const committed = finds()
    await scene.broker.until(({ deliveries }) => deliveries.some(({ key }) => key === 'small'), {
      signal: AbortSignal.timeout(20_000),
    })
    expect(finds() - committed).toBeLessThanOrEqual(3)
    await relay.drain()
    expect(scene.broker.count).toBe(1001)
    await relay.stop()
  })
})
