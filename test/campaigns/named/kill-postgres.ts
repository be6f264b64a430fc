import type { Campaign } from '../campaign-plan.ts'
import type { Stage } from '../stage.ts'
import { lasting, repeatedly } from '../tempo.ts'

/** The server dies like a machine that loses power, and comes back; sometimes later than a lease lasts. */
export const killPostgres: Campaign = {
  name: 'kill-postgres',
  about: 'PostgreSQL is killed with SIGKILL and restarted',
  disturb: (stage, until) =>
    repeatedly({ random: stage.random, minMs: 500, maxMs: 2500 }, until, () => killOnce(stage, until)),
}

export async function killOnce({ postgres, random, faults, options, say }: Stage, until: AbortSignal): Promise<void> {
  const over = faults.begin('postgres killed')
  say('killing PostgreSQL')
  await postgres.kill()
  if (random.chance(0.3)) await lasting(random.below(options.leaseMs * 1.5), until)
  await postgres.restart()
  over()
}
