import { describe, expect, it } from 'vitest'
import { observe } from './observed.ts'
import { json, openScene, type Scene } from './scene.ts'

const quick = { backoffBaseMs: 10, backoffCapMs: 20 }

/** Three events of one key of which the broker never takes the first, and one of another key. */
async function poisoned(scene: Scene): Promise<{ readonly tries: () => number; readonly cure: () => void }> {
  const [first] = await scene.enqueue(...[1, 2, 3].map((payload) => ({ topic: 'orders', key: 'k', payload })), {
    topic: 'orders',
    key: 'other',
    payload: 'other',
  })
  const poison = scene.broker.reject({ eventId: first?.eventId ?? '' })
  return { tries: () => poison.hits, cure: poison.end }
}

const delivered = (scene: Scene): unknown[] => scene.broker.deliveries.map(json)
const states = async (scene: Scene): Promise<unknown[]> => {
  const { rows } = await scene.pool.query<{ status: string }>(
    `select status from outbox.events where key = 'k' order by id`,
  )
  return rows.map(({ status }) => status)
}

describe('an event that the broker never takes', () => {
  it('with a number of attempts fails after them, and its key goes on without it', async () => {
    await using scene = await openScene()
    const { tries } = await poisoned(scene)
    const { relay, until } = observe(scene, { ...quick, maxAttempts: 3 })
    await relay.start()
    await until(() => relay.counts().published === 3)
    await relay.stop()
    expect(tries()).toBe(3)
    expect(delivered(scene).filter((payload) => payload !== 'other')).toEqual([2, 3])
    expect(await states(scene)).toEqual(['failed', 'published', 'published'])
  })

  it('with endless attempts blocks its key for as long as it takes, and no other', async () => {
    await using scene = await openScene()
    const { tries, cure } = await poisoned(scene)
    const { relay, until } = observe(scene, { ...quick, maxAttempts: Infinity })
    await relay.start()
    await until(() => tries() > 20)
    expect(delivered(scene)).toEqual(['other'])
    expect(await states(scene)).toEqual(['pending', 'pending', 'pending'])
    cure()
    await until(() => relay.counts().published === 4)
    await relay.stop()
    expect(delivered(scene)).toEqual(['other', 1, 2, 3])
  })

  it('with onExhausted hold stops its key after its attempts: it is held, and the rest waits behind it', async () => {
    await using scene = await openScene()
    const { tries } = await poisoned(scene)
    const { relay, until } = observe(scene, { ...quick, maxAttempts: 3, onExhausted: 'hold' })
    await relay.start()
    await until(() => relay.counts().failed === 1)
    await relay.drain()
    await relay.stop()
    expect(tries()).toBe(3)
    expect(delivered(scene)).toEqual(['other'])
    expect(await states(scene)).toEqual(['held', 'pending', 'pending'])
    // Also for events that come later, and for a relay that starts later.
    await scene.enqueue({ topic: 'orders', key: 'k', payload: 4 })
    await scene.deliver()
    expect(delivered(scene)).toEqual(['other'])
  })

  it('is requeued once it failed, and goes out behind what its key published meanwhile, which the report says', async () => {
    await using scene = await openScene()
    const { cure } = await poisoned(scene)
    const { relay, until } = observe(scene, { ...quick, maxAttempts: 3 })
    await relay.start()
    await until(() => relay.counts().published === 3)
    cure()
    const report = await scene.outbox.operator({ actor: 'jane' }).requeue({ key: 'k', topic: 'orders' })
    expect(report).toMatchObject({ changed: 1, laterPublished: { events: 2, keys: 1 } })
    await until(() => relay.counts().published === 4)
    await relay.stop()
    expect(delivered(scene).filter((payload) => payload !== 'other')).toEqual([2, 3, 1])
  })

  it('is discarded in the strict mode, and the rest of its key goes out', async () => {
    await using scene = await openScene()
    const { tries } = await poisoned(scene)
    const { relay, until } = observe(scene, { ...quick, maxAttempts: Infinity })
    await relay.start()
    await until(() => tries() > 5)
    const first = await scene.count(`select min(id) from outbox.events where key = 'k'`)
    await scene.outbox.operator({ actor: 'jane' }).discard({ ids: [String(first)] })
    await until(() => relay.counts().published === 3)
    await relay.stop()
    expect(delivered(scene)).toEqual(['other', 2, 3])
    expect(await states(scene)).toEqual(['published', 'published'])
  })

  it('is requeued while it is held, and its whole key goes out in order', async () => {
    await using scene = await openScene()
    const { cure } = await poisoned(scene)
    const { relay, until } = observe(scene, { ...quick, maxAttempts: 3, onExhausted: 'hold' })
    await relay.start()
    await until(() => relay.counts().failed === 1)
    cure()
    await scene.outbox.operator({ actor: 'jane' }).requeue({ key: 'k', topic: 'orders' })
    await until(() => relay.counts().published === 4)
    await relay.stop()
    expect(delivered(scene)).toEqual(['other', 1, 2, 3])
  })
})
