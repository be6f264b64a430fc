import type { Campaign } from '../campaign-plan.ts'
import type { Stage } from '../stage.ts'
import { lasting, repeatedly } from '../tempo.ts'

/** A relay is frozen for longer than its lease with runs in hand, and goes on as if nothing had been. */
export const pauseRelays: Campaign = {
  name: 'pause-relays',
  about: 'relays are stopped with SIGSTOP for longer than their lease and go on',
  disturb: (stage, until) =>
    repeatedly({ random: stage.random, minMs: 100, maxMs: 800 }, until, () => pauseSome(stage, until)),
}

/** Freezes one relay, sometimes all of them, for half a lease to one and a half. */
export async function pauseSome({ relays, random, options, say }: Stage, until: AbortSignal): Promise<void> {
  if (relays.names.length === 0) return
  const victims = random.chance(0.15) ? relays.names : [random.pick(relays.names)]
  const ms = Math.round(options.leaseMs * (0.5 + random.next()))
  say(`pausing ${victims.join(', ')} for ${ms} ms`)
  for (const name of victims) relays.pause(name)
  await lasting(ms, until)
  for (const name of victims) relays.resume(name)
}
