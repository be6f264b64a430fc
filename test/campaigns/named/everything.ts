import type { Campaign } from '../campaign-plan.ts'
import type { Stage } from '../stage.ts'
import { createBeside, lasting, repeatedly } from '../tempo.ts'
import { breakBroker } from './broker-outage.ts'
import { cutOne } from './cut-connections.ts'
import { failOver } from './failover.ts'
import { killOnce } from './kill-postgres.ts'
import { killSome } from './kill-relays.ts'
import { killWriter } from './kill-writers.ts'
import { breakNetwork } from './network.ts'
import { pauseSome } from './pause-relays.ts'

/** Whatever can go wrong goes wrong, several things at a time, through a pooler and to a real broker. */
export const everything: Campaign = {
  name: 'everything',
  about: 'a random mix of all of it, through PgBouncer and to Redis',
  needs: ['pgbouncer', 'redis'],
  stage: { route: 'pooler', broker: 'redis', brokerProxy: true, total: 0, skewMs: [600_000, -600_000, 0] },
  async disturb(stage, until) {
    await Promise.all([disturbProcesses(stage, until), disturbServers(stage, until)])
  },
}

async function disturbProcesses(stage: Stage, until: AbortSignal): Promise<void> {
  const beside = createBeside()
  await repeatedly({ random: stage.random, minMs: 100, maxMs: 1500 }, until, () => {
    const act = stage.random.pick([killSome, killWriter, cutOne, cutOne, pauseSome])
    beside.start(act(stage, until))
  })
  await beside.ended()
}

/** One after the other: two of them at once would break what the first one wants to mend. */
async function disturbServers(stage: Stage, until: AbortSignal): Promise<void> {
  await repeatedly({ random: stage.random, minMs: 100, maxMs: 1500 }, until, async () => {
    if (stage.random.chance(0.1)) await failOver(stage)
    else await stage.random.pick([killOnce, breakNetwork, breakNetwork, breakBroker])(stage, until)
    await lasting(stage.random.below(500), until)
  })
}
