import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { memoryPublisher } from '@inorder/relay-memory'
import { describe, expect, it } from 'vitest'
import { asking } from './observed.ts'
import { openScene } from './scene.ts'

const kibibyte = 1024
const mebibyte = 1024 * kibibyte

// What nobody holds any more counts until it is collected, which a busy machine puts off.
setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

describe('a backlog of large payloads', () => {
  it('is held in memory by its bytes and not by the number of its events', { timeout: 120_000 }, async () => {
    await using scene = await openScene()
    const size = 256 * kibibyte
    // Random bytes would have to travel there first; a repeated one is large all the same on its way back.
    await scene.pool.query(
      `insert into outbox.events (topic, key, payload)
       select 'files', 'k' || n, convert_to(repeat('x', $1), 'UTF8') from generate_series(1, 256) n`,
      [size],
    )
    let held = 0
    let most = 0
    let peak = 0
    let calls = 0
    const publisher = asking(memoryPublisher(scene.broker), async (run) => {
      held += run.length
      most = Math.max(most, held)
      await delay(20)
      if (calls++ % 8 === 0) collectGarbage()
      if (calls % 8 === 1) peak = Math.max(peak, process.memoryUsage().arrayBuffers)
      held -= run.length
      return undefined
    })
    collectGarbage()
    const before = process.memoryUsage().arrayBuffers
    await scene.relay({ publisher, maxInFlightBytes: 4 * mebibyte }).drain()
    expect(await scene.count(`select count(*) from outbox.events where status = 'published'`)).toBe(256)
    expect(most).toBeGreaterThan(1)
    expect(most).toBeLessThanOrEqual(16)
    // The broker of the test keeps all 64 MiB that it took; the rest is what the relay and the driver hold.
    expect(peak - before - scene.broker.count * size).toBeLessThan(32 * mebibyte)
  })

  it('of which each is larger than all bytes in flight goes out one by one', async () => {
    await using scene = await openScene()
    const payload = Buffer.alloc(256 * kibibyte, 'x')
    await scene.enqueue(...Array.from({ length: 10 }, (_, n) => ({ topic: 'files', key: `k${String(n)}`, payload })), {
      topic: 'files',
      key: 'k0',
      payload: 1,
    })
    let held = 0
    let most = 0
    const publisher = asking(memoryPublisher(scene.broker), async (run) => {
      held += run.filter((event) => (event.payload?.byteLength ?? 0) > kibibyte).length
      most = Math.max(most, held)
      await delay(5)
      held -= run.filter((event) => (event.payload?.byteLength ?? 0) > kibibyte).length
      return undefined
    })
    await scene.relay({ publisher, maxInFlightBytes: 100 * kibibyte }).drain()
    expect(scene.broker.count).toBe(11)
    expect(most).toBe(1)
  })
})
