import { gate } from './gate.ts'

/** A place where the broker, or a statement, stops until the test has done something. */
export interface Pause {
  readonly reached: Promise<void>
  readonly goOn: () => void
  /** For whoever is to stop here. */
  readonly stop: () => Promise<void>
}

export function pause(): Pause {
  const [reached, left] = [gate(), gate()]
  return {
    reached: reached.opened,
    goOn: left.open,
    stop() {
      reached.open()
      return left.opened
    },
  }
}
