import type { Campaign } from '../campaign-plan.ts'
import { lasting, repeatedly } from '../tempo.ts'

/** Relays die again and again soon after their start, of something that has nothing to do with any event. */
export const crashLoop: Campaign = {
  name: 'crash-loop',
  about: 'relays die within a second of their start, again and again, of nothing that an event did',
  stage: { relays: 2, leaseMs: 1000, hands: 2 },
  async disturb({ relays, random }, until) {
    await repeatedly({ random, minMs: 1, maxMs: 50 }, until, async () => {
      await Promise.all(
        relays.names.map(async (name) => {
          await lasting(random.below(1000), until)
          await relays.kill(name)
        }),
      )
      await Promise.all([relays.start(), relays.start()])
    })
  },
}
