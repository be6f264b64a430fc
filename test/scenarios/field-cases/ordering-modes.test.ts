import type { EventInput } from '@inorder/core'
import { describe, expect, it } from 'vitest'
import { json, openScene, type Scene } from './scene.ts'

const retry = "update outbox.events set available_at = now() where status = 'pending' and available_at is not null"

async function deliver(scene: Scene): Promise<unknown[]> {
  return (await scene.deliver()).map(json)
}

describe('an unordered event that fails', () => {
  const all = [1, 2, 3]

  it.each<[string, Partial<EventInput>, 'key' | 'none']>([
    ['without a key', { key: null }, 'key'],
    ['with a key, that opts out by itself', { key: 'k', ordering: 'none' }, 'key'],
    ['with a key, in an outbox without order', { key: 'k' }, 'none'],
  ])('blocks nothing, and is tried again by itself: %s', async (_, input, mode) => {
    await using scene = await openScene()
    await scene.outbox.operator({ actor: 'jane' }).setOrdering(mode)
    const ids = await scene.enqueue(
      ...all.map((payload): EventInput => ({ topic: 'free', key: null, payload, ...input })),
      { topic: 'free', key: 'k', ordering: 'key', payload: 'of the key' },
    )
    const fault = scene.broker.reject({ eventId: ids[0]?.eventId ?? '' }, { times: 1 })
    expect(new Set(await deliver(scene))).toEqual(new Set([2, 3, 'of the key']))
    expect(fault.hits).toBe(1)
    await scene.pool.query(retry)
    expect(await deliver(scene)).toEqual([1])
  })
})

describe('total ordering', () => {
  it('lets an event that fails stop everything behind it, whatever its topic and key, and nothing of other orders', async () => {
    await using scene = await openScene()
    const total = (topic: string, key: string | null, payload: unknown): EventInput => ({
      topic,
      key,
      payload,
      ordering: 'total',
    })
    const ids = await scene.enqueue(
      total('a', 'k', 1),
      total('a', 'k', 2),
      total('b', 'other', 3),
      total('b', null, 4),
      { topic: 'b', key: 'k', ordering: 'key', payload: 'of a key' },
    )
    const fault = scene.broker.reject({ eventId: ids[1]?.eventId ?? '' }, { times: 1 })
    expect(new Set(await deliver(scene))).toEqual(new Set([1, 'of a key']))
    expect(fault.hits).toBe(1)
    await scene.pool.query(retry)
    expect(await deliver(scene)).toEqual([2, 3, 4])
  })
})
