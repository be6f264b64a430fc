import fc from 'fast-check'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { play } from './play.ts'
import { script } from './script.ts'
import { openTheatre, type Theatre } from './world.ts'

/** 400 took 107 s on two busy cores. More for a night: INORDER_MODEL_RUNS=5000. */
const runs = Number(process.env['INORDER_MODEL_RUNS'] ?? 300)
const seed = Number(process.env['INORDER_MODEL_SEED'] ?? 1)
const path = process.env['INORDER_MODEL_PATH']

describe('a relay keeps its promises', () => {
  let theatre: Theatre
  beforeAll(async () => {
    theatre = await openTheatre()
  })
  afterAll(() => theatre[Symbol.asyncDispose]())

  it('in whatever order things happen', { timeout: 600_000 }, async () => {
    let steps = 0
    let played = 0
    const property = fc.asyncProperty(script, async (given) => {
      const result = await play(theatre, given)
      steps += result.steps
      played += 1
      if (result.wrong !== undefined) throw new Error([result.wrong, ...result.story].join('\n'))
    })
    const began = process.hrtime.bigint()
    const details = await fc.check(property, { seed, numRuns: runs, ...(path === undefined ? {} : { path }) })
    const ms = Number((process.hrtime.bigint() - began) / 1_000_000n)
    if (details.failed) {
      throw new Error(
        `INORDER_MODEL_SEED=${details.seed} INORDER_MODEL_PATH=${details.counterexamplePath ?? ''} (sequence ${details.numRuns}, shrunk ${details.numShrinks} times)\n${details.errorInstance instanceof Error ? (details.errorInstance.stack ?? '') : ''}`,
      )
    }
    console.log(`seed ${details.seed}: ${played} sequences, ${steps} steps, ${ms} ms`)
  })
})
