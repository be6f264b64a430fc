import type { Campaign } from '../campaign-plan.ts'
import { killRelays } from './kill-relays.ts'

const tenMinutes = 600_000

/**
 * The clocks of the relay processes are ten minutes fast, ten minutes slow and right. Relays die as well, so that leases
 * and takeovers are decided; many events are for later and many are rejected, so that times are compared.
 */
export const clockSkew: Campaign = {
  name: 'clock-skew',
  about: 'the clocks of relays are ten minutes fast and slow, and relays are killed',
  stage: { skewMs: [tenMinutes, -tenMinutes, 0], delayed: 0.25, rejected: 0.08 },
  disturb: killRelays.disturb,
}
