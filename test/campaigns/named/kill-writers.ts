import type { Campaign } from '../campaign-plan.ts'
import type { Stage } from '../stage.ts'
import { createBeside, repeatedly } from '../tempo.ts'

/** Writers die between two statements, in COMMIT and after it; nobody knows which until the database is asked. */
export const killWriters: Campaign = {
  name: 'kill-writers',
  about: 'writer processes are killed with SIGKILL, often while COMMIT is on its way, and replaced',
  stage: { writers: 3 },
  async disturb(stage, until) {
    const beside = createBeside()
    await repeatedly({ random: stage.random, minMs: 100, maxMs: 1200 }, until, () => {
      beside.start(killWriter(stage))
    })
    await beside.ended()
  },
}

export async function killWriter({ writers, random }: Stage): Promise<void> {
  if (writers.names.length < 2) return
  await writers.kill(random.pick(writers.names), random.pick(['now', 'at commit']))
  await writers.start()
}
