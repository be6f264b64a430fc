import type { TcpProxy } from '@inorder/harness'
import type { Campaign } from '../campaign-plan.ts'
import type { Stage } from '../stage.ts'
import { lasting, repeatedly } from '../tempo.ts'

/** What a network can do to a connection, to the database or to the broker. */
export const network: Campaign = {
  name: 'network',
  about: 'connections to the database and to Redis are slow, silent, half open and reset',
  needs: ['redis'],
  stage: { route: 'proxy', broker: 'redis', brokerProxy: true, total: 0 },
  disturb: (stage, until) =>
    repeatedly({ random: stage.random, minMs: 200, maxMs: 1000 }, until, () => breakNetwork(stage, until)),
}

/** Breaks one of the two networks in one way for a while, and mends it. */
export async function breakNetwork(
  { databaseProxy, brokerProxy, random, faults, say }: Stage,
  until: AbortSignal,
): Promise<void> {
  const networks = { database: databaseProxy, broker: brokerProxy }
  const side = random.pick(['database', 'broker'] as const)
  const proxy = networks[side]
  if (proxy === undefined) return
  const way = random.pick(Object.keys(ways) as (keyof typeof ways)[])
  const ms = 100 + random.below(2500)
  say(`network to the ${side}: ${way}, ${ms} ms`)
  const over = faults.begin(way)
  ways[way](proxy)
  await lasting(ms, until)
  mend(proxy, way)
  over()
}

const ways = {
  slow(proxy: TcpProxy) {
    proxy.delayMs = 80
  },
  silent(proxy: TcpProxy) {
    proxy.freeze()
  },
  'half open'(proxy: TcpProxy) {
    proxy.strand()
  },
  reset(proxy: TcpProxy) {
    proxy.reset()
  },
  'answers lost'(proxy: TcpProxy) {
    proxy.dropReplies = true
  },
  refused(proxy: TcpProxy) {
    proxy.refuse(true)
    proxy.reset()
  },
}

function mend(proxy: TcpProxy, way: keyof typeof ways): void {
  // The stream has a hole where answers were swallowed.
  if (way === 'answers lost') proxy.reset()
  proxy.delayMs = 0
  proxy.dropReplies = false
  proxy.thaw()
  proxy.refuse(false)
}
