import { writeSync } from 'node:fs'
import type { Reporter } from 'vitest/node'
import { closingText, type Tally } from '../../../tools/closing-text.mjs'

/**
 * Ends a run with the closing line and an honest exit code. A failure that belongs to no test (an error outside any
 * test, a file that does not load, a global setup that throws) counts as one failed.
 * With INORDER_TALLY_FD the tally goes to that file descriptor instead: tools/test.mjs listens there, and prints the
 * line even when this process is killed.
 */
export function closingLine(): Reporter {
  const tally: Tally = { passed: 0, failed: 0, skipped: 0 }
  let finished = false
  return {
    onInit() {
      // The exit event is the last moment: vitest prints its own summary after onTestRunEnd.
      process.once('exit', (code) => {
        if (tally.failed === 0 && (code !== 0 || !finished)) tally.failed = 1
        if (tally.failed > 0) process.exitCode = code === 0 ? 1 : code
        const pipe = process.env.INORDER_TALLY_FD
        if (pipe === undefined) console.log(closingText(tally))
        else writeSync(Number(pipe), JSON.stringify(tally))
      })
    },
    onTestRunEnd(modules, unhandledErrors) {
      finished = true
      Object.assign(tally, { passed: 0, failed: unhandledErrors.length, skipped: 0 })
      for (const module of modules) {
        tally.failed += module.errors().length
        for (const suite of module.children.allSuites()) tally.failed += suite.errors().length
        for (const test of module.children.allTests()) {
          const { state } = test.result()
          tally[state === 'pending' ? 'skipped' : state]++
        }
      }
    },
  }
}
