import { setTimeout as delay } from 'node:timers/promises'
import type { OutboxEvent } from '@inorder/core'
import { memoryPublisher } from '@inorder/relay-memory'
import { describe, expect, it } from 'vitest'
import { createRandom } from '../../stand/random.ts'
import { asking, observe } from './observed.ts'
import { json, openScene } from './scene.ts'

describe('rows that were touched, so that they no longer lie in the order of their ids,', () => {
  it.each(['key', 'total'] as const)('are published in that order all the same, with ordering %s', async (ordering) => {
    await using scene = await openScene()
    const numbers = Array.from({ length: 2000 }, (_, n) => n + 1)
    await scene.enqueue(...numbers.map((n) => ({ topic: 'orders', key: 'k', payload: n, ordering })))
    // A touch moves a row to another place; after the vacuum later ones take the places that became free.
    await scene.pool.query(`update outbox.events set content_type = 'a' where id % 7 = 0`)
    await scene.pool.query('vacuum outbox.events')
    await scene.pool.query(`update outbox.events set content_type = 'b' where id in (1, 5, 9)`)
    const { rows } = await scene.pool.query<{ id: string }>('select id from outbox.events order by ctid')
    expect(rows.map(({ id }) => Number(id))).not.toEqual(numbers)
    expect((await scene.deliver()).map(json)).toEqual(numbers)
  })
})

describe('ids of different length, up to those that no JavaScript number can hold,', () => {
  // Text would put 10 before 9, and of the last four numbers doubles would make three.
  const ids = [
    ...['9', '10', '11', '99', '100', '101'],
    ...['9007199254740992', '9007199254740993', '9007199254740994', '9007199254740995'],
  ]
  const insert = `insert into outbox.events (id, topic, key, ordering, payload) overriding system value
    values ($1::bigint, 'orders', 'k', $2, convert_to($1::text, 'UTF8'))`

  it.each([
    ['key', 1],
    ['key', 100],
    ['total', 1],
    ['total', 100],
  ])('keep their numeric order and stay distinct, with ordering %s and runs of %i', async (ordering, maxRun) => {
    await using scene = await openScene()
    for (const id of ids) await scene.pool.query(insert, [id, ordering])
    await scene.relay({ maxRun }).drain()
    expect(scene.broker.deliveries.map(({ id }) => id)).toEqual(ids)
  })

  it('keep it while the relay reads a key on, again and again', async () => {
    await using scene = await openScene()
    await using relay = scene.relay({ maxRun: 1 })
    await relay.start()
    for (const id of ids) await scene.pool.query(insert, [id, 'key'])
    await relay.drain()
    expect(scene.broker.deliveries.map(({ id }) => id)).toEqual(ids)
  })
})

describe('three relays that share a broker which often fails', () => {
  it('never publish a key twice at once, lose nothing, and keep every key in order', { timeout: 60_000 }, async () => {
    await using scene = await openScene()
    const random = createRandom(24)
    const underway = new Set<string>()
    const twiceAtOnce: string[] = []
    const seen = async ([event]: readonly OutboxEvent[]): Promise<undefined> => {
      const key = event?.key ?? ''
      if (underway.has(key)) twiceAtOnce.push(key)
      underway.add(key)
      await delay(random.below(20))
      underway.delete(key)
    }
    const fails = (probability: number) => (): boolean => random.chance(probability)
    scene.broker.reject(fails(0.05))
    const down = (): void => {
      if (random.chance(0.03)) scene.broker.unavailable({ times: 1 })
    }
    const relays = [1, 5, 20].map((maxRun) =>
      observe(scene, {
        maxRun,
        backoffBaseMs: 20,
        backoffCapMs: 100,
        breakerMinMs: 5,
        breakerMaxMs: 20,
        maxAttempts: Infinity,
        publisher: asking(memoryPublisher(scene.broker), (run) => {
          down()
          return seen(run)
        }),
      }),
    )
    await Promise.all(relays.map(({ relay }) => relay.start()))
    // Whoever comes first has all slots until the others have renewed once.
    await expect.poll(() => relays.every(({ relay }) => relay.health().slots > 0), { timeout: 20_000 }).toBe(true)
    const keys = Array.from({ length: 25 }, (_, n) => `k${String(n)}`)
    // Each key has one writer, as the row lock of its aggregate would have it.
    const write = async (own: readonly string[]): Promise<void> => {
      for (let n = 1; n <= 24; n++) for (const key of own) await scene.enqueue({ topic: 'orders', key, payload: n })
    }
    await Promise.all([write(keys.slice(0, 12)), write(keys.slice(12))])
    await Promise.all(relays.map(({ relay }) => relay.drain()))
    await scene.broker.until(({ count }) => count >= 600, { signal: AbortSignal.timeout(30_000) })
    for (const key of keys) {
      const delivered = scene.broker.deliveries.filter((delivery) => delivery.key === key).map(json)
      expect(delivered).toEqual(Array.from({ length: 24 }, (_, n) => n + 1))
    }
    expect(twiceAtOnce).toEqual([])
    expect(relays.flatMap(({ signals }) => signals.filter(({ kind }) => kind === 'lease-lost'))).toEqual([])
    for (const { relay } of relays) expect(relay.counts().published).toBeGreaterThan(0)
    for (const { relay } of relays) await relay.stop()
  })
})
