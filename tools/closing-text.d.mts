export interface Tally {
  passed: number
  failed: number
  skipped: number
}

/** `Tests: 12 passed, 0 failed`, with `, 3 skipped` when there are any. */
export function closingText(tally: Tally): string
