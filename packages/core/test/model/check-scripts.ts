import { freshDatabase } from '@inorder/harness'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { play } from './play.ts'
import { type Script, script } from './script.ts'
import { openTheatre, type Theatre } from './world.ts'

/** In all files together. A night takes more: INORDER_MODEL_RUNS=50000. */
const runs = Number(process.env['INORDER_MODEL_RUNS'] ?? 2000)
const seed = Number(process.env['INORDER_MODEL_SEED'] ?? 1)
const path = process.env['INORDER_MODEL_PATH']

/**
 * The clocks belong to the process, so a process plays one script at a time and waits for the database half of the time.
 * Two files, which the test runner plays side by side, make use of that.
 */
const files = 2

/** Ten times what a script takes on a quiet machine, and time to shrink one. */
const longestMs = 120_000 + runs * 200

/** Each file has a sign of its own for its seed. The script of a path is played by the first alone. */
export function checkScripts(sign: 1 | -1): void {
  describe.skipIf(path !== undefined && sign === -1)('a relay keeps its promises', () => {
    let theatre: Theatre
    beforeAll(async () => {
      theatre = await openTheatre(await freshDatabase())
    })
    afterAll(() => theatre[Symbol.asyncDispose]())

    it('in whatever order things happen', { timeout: longestMs + 60_000 }, async () => {
      let steps = 0
      let played = 0
      let last: Script | undefined
      const property = fc.asyncProperty(script, async (given) => {
        last = given
        const result = await play(theatre, given)
        steps += result.steps
        played += 1
        if (result.wrong !== undefined) throw new Error([result.wrong, ...result.story].join('\n'))
      })
      const began = process.hrtime.bigint()
      const details = await fc.check(property, {
        seed: seed * sign,
        numRuns: Math.ceil(runs / files),
        ...(path === undefined ? {} : { path }),
        // Without it the runner would end a slow machine's test, or a script that hangs, and say nothing of either.
        plugins: [fc.interruptAfterTimeLimit(longestMs)],
      })
      const ms = Number((process.hrtime.bigint() - began) / 1_000_000n)
      const summary = `seed ${details.seed}: ${played} sequences, ${steps} steps, ${ms} ms`
      if (details.interrupted && !details.failed)
        throw new Error(`${summary}, and then it took too long, at ${fc.stringify(last)}`)
      if (details.failed) {
        const { message } = details.errorInstance as Error
        throw new Error(
          `INORDER_MODEL_SEED=${details.seed} INORDER_MODEL_PATH=${details.counterexamplePath ?? ''} (sequence ${details.numRuns}, shrunk ${details.numShrinks} times)\n${message}`,
        )
      }
      console.log(summary)
    })
  })
}
