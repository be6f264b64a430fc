import type { Campaign } from '../campaign-plan.ts'
import type { Stage } from '../stage.ts'
import { createBeside, repeatedly } from '../tempo.ts'

/** Relays die in the middle of whatever they do and are replaced, sometimes all of them at once. */
export const killRelays: Campaign = {
  name: 'kill-relays',
  about: 'relays are killed with SIGKILL and replaced',
  async disturb(stage, until) {
    const beside = createBeside()
    await repeatedly({ random: stage.random, minMs: 100, maxMs: 1500 }, until, () => {
      beside.start(killSome(stage))
    })
    await beside.ended()
  },
}

/** Kills one relay that is at work, sometimes all of them. Resolves when as many are at work again. */
export async function killSome({ relays, random, say }: Stage): Promise<void> {
  if (relays.names.length === 0) return
  const victims = random.chance(0.15) ? relays.names : [random.pick(relays.names)]
  say(`killing ${victims.join(', ')}`)
  await Promise.all(victims.map((name) => relays.kill(name)))
  await Promise.all(victims.map(() => relays.start()))
}
