import type { Campaign } from '../campaign-plan.ts'
import { createBeside, repeatedly } from '../tempo.ts'

/** Relays join and leave all the time, so that slots are handed over without end. Nobody crashes. */
export const churn: Campaign = {
  name: 'churn',
  about: 'relays join and leave about every second',
  stage: { relays: 2 },
  async disturb({ relays, random, faults }, until) {
    const beside = createBeside()
    const join = async (): Promise<void> => faults.strike('relay joined', await relays.start())
    const leave = async (name: string): Promise<void> => {
      await relays.stop(name)
      faults.strike('relay left', name)
    }
    let wanted = relays.names.length
    await repeatedly({ random, minMs: 200, maxMs: 1500 }, until, () => {
      const joins = wanted < 2 || (wanted < 5 && random.chance(0.5))
      if (!joins && relays.names.length === 0) return
      wanted += joins ? 1 : -1
      beside.start(joins ? join() : leave(random.pick(relays.names)))
    })
    await beside.ended()
  },
}
