import type { Campaign } from '../campaign-plan.ts'
import { lasting } from '../tempo.ts'

/** Not about the relay but about the campaigns: they have to notice all of it, so this one must end with exit code 1. */
export const liars: Campaign = {
  name: 'liars',
  fails: true,
  about: 'publishers lose, swap and repeat events and say nothing of it: this campaign must fail',
  stage: { lies: { lost: 0.02, swapped: 0.2, repeated: 0.02 }, rejected: 0, unavailable: 0, hands: 8, keys: 2 },
  async disturb(_stage, until) {
    await lasting(2 ** 31 - 1, until)
  },
}
