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

/**
 * Kills one relay that is at work, sometimes all of them. Resolves when as many are at work again. Those that have just
 * begun are spared: what becomes of relays that all die young is the campaign `crash-loop`.
 */
export async function killSome({ relays, random, options, say }: Stage): Promise<void> {
  const grown = relays.longerThan(2 * options.leaseMs)
  if (grown.length === 0) return
  const victims = random.chance(0.15) ? grown : [random.pick(grown)]
  say(`killing ${victims.join(', ')}`)
  await Promise.all(victims.map((name) => relays.kill(name)))
  await Promise.all(victims.map(() => relays.start()))
}
