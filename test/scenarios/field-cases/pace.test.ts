import type { OutboxEvent } from '@inorder/core'
import { memoryPublisher } from '@inorder/relay-memory'
import { describe, expect, it } from 'vitest'
import { asking, observe } from './observed.ts'
import { openScene } from './scene.ts'

describe('with the default options', () => {
  it('99 of 100 events are acknowledged within 2 s of their commit, although nobody wakes the relay', async () => {
    await using scene = await openScene()
    const { relay, until } = observe(scene)
    await relay.start()
    await until(() => relay.health().sinceLastFindMs !== undefined)
    const events = 300
    // Plain SQL, one transaction each: nothing but the poll finds it.
    for (let n = 0; n < events; n++)
      await scene.pool.query(`insert into outbox.events (topic, key, payload) values ('orders', $1, '1')`, [
        `k${String(n % 40)}`,
      ])
    await until(() => relay.counts().published === events)
    await relay.stop()
    const lag = await scene.count(
      `select percentile_disc(0.99) within group (order by extract(epoch from published_at - ready_at)) from outbox.events`,
    )
    expect(lag).toBeGreaterThan(0)
    expect(lag).toBeLessThan(2)
  })

  it('the backlog of a key goes out in calls of at most 100 events', async () => {
    await using scene = await openScene()
    await scene.enqueue(...Array.from({ length: 250 }, (_, n) => ({ topic: 'orders', key: 'k', payload: n })))
    const calls: (readonly OutboxEvent[])[] = []
    const publisher = asking(memoryPublisher(scene.broker), (run) => {
      calls.push(run)
      return undefined
    })
    await scene.relay({ publisher }).drain()
    expect(calls.map(({ length }) => length)).toEqual([100, 100, 50])
  })
})
