import type { Campaign } from '../campaign-plan.ts'
import { createBeside, repeatedly } from '../tempo.ts'
import { cutOne } from './cut-connections.ts'
import { killSome } from './kill-relays.ts'

/** Everything goes through the pooler: migrations, writers, relays; its own connections are cut as well. */
export const pooler: Campaign = {
  name: 'pooler',
  about: 'everything goes through PgBouncer in transaction mode; relays are killed, connections are cut',
  needs: ['pgbouncer'],
  stage: { route: 'pooler' },
  async disturb(stage, until) {
    const beside = createBeside()
    await repeatedly({ random: stage.random, minMs: 50, maxMs: 600 }, until, async () => {
      if (stage.random.chance(0.2)) beside.start(killSome(stage))
      else await cutOne(stage)
    })
    await beside.ended()
  },
}
