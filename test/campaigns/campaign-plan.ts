import type { ServerName } from '@inorder/harness'
import type { Evidence } from './evidence.ts'
import type { StageOptions } from './stage-options.ts'
import type { Stage } from './stage.ts'

/** One way to make trouble: what `npm run campaign -- NAME` runs. */
export interface Campaign {
  readonly name: string
  /** One line for the list of campaigns. */
  readonly about: string
  /** Servers that it needs beside PostgreSQL. */
  readonly needs?: readonly ServerName[]
  readonly stage?: Partial<StageOptions>
  /** Makes trouble until the signal aborts, and leaves everything whole. */
  readonly disturb: (stage: Stage, until: AbortSignal) => Promise<void>
  /** Set where an invariant has to break, to show that it is noticed: then nothing is kept. */
  readonly fails?: true
  /** What else has to be true of this campaign; what is wrong, in words. */
  readonly check?: (evidence: Evidence) => string[]
}
