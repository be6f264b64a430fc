import { Redis } from 'ioredis'
import type { RedisServer } from '@inorder/harness'
import type { Campaign } from '../campaign-plan.ts'
import type { Stage } from '../stage.ts'
import { lasting, repeatedly } from '../tempo.ts'

/** Redis is killed, frozen or full, for up to a few seconds. It keeps what it acknowledged. */
export const brokerOutage: Campaign = {
  name: 'broker-outage',
  about: 'Redis is killed, paused and out of memory',
  needs: ['redis'],
  stage: { broker: 'redis', total: 0, rejected: 0 },
  disturb: (stage, until) =>
    repeatedly({ random: stage.random, minMs: 300, maxMs: 1500 }, until, () => breakBroker(stage, until)),
}

export async function breakBroker({ redis, random, faults, say }: Stage, until: AbortSignal): Promise<void> {
  if (redis === undefined) return
  const way = random.pick(Object.keys(ways) as (keyof typeof ways)[])
  const ms = 100 + random.below(3500)
  say(`Redis: ${way}, ${ms} ms`)
  const over = faults.begin(`redis ${way}`)
  await ways[way](redis, () => lasting(ms, until))
  over()
}

const ways = {
  async killed(redis: RedisServer, wait: () => Promise<unknown>) {
    await redis.kill()
    await wait()
    await redis.restart()
  },
  async paused(redis: RedisServer, wait: () => Promise<unknown>) {
    redis.pause()
    await wait()
    redis.resume()
  },
  async 'out of memory'(redis: RedisServer, wait: () => Promise<unknown>) {
    await setMaxMemory(redis, '1')
    await wait()
    await setMaxMemory(redis, '0')
  },
}

async function setMaxMemory({ url }: RedisServer, bytes: string): Promise<void> {
  const redis = new Redis(url)
  await redis.config('SET', 'maxmemory-policy', 'noeviction')
  await redis.config('SET', 'maxmemory', bytes)
  redis.disconnect()
}
