import { functionOption, numberOption, type OptionRule } from '@inorder/core'

// The largest delay that a timer of Node takes.
const maxTimerMs = 2 ** 31 - 1
const matchNames: ReadonlySet<string> = new Set(['key', 'topic', 'eventId'])

export const milliseconds: OptionRule = numberOption({ min: 0, max: maxTimerMs, integer: false })
export const times: OptionRule = numberOption({ min: 1, infinite: true })

/** Which events a fault is about. */
export const match: OptionRule = {
  check(value) {
    if (functionOption().check(value) === undefined) return undefined
    const named =
      typeof value === 'object' && value !== null && Object.keys(value).every((name) => matchNames.has(name))
    return named ? undefined : 'must be a function or { key?, topic?, eventId? }'
  },
}
