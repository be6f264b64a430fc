/** The one line that people and programs read at the end of a test run. Types are in closing-text.d.mts. */
export function closingText({ passed, failed, skipped }) {
  return `Tests: ${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}
