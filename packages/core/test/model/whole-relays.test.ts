import fc from 'fast-check'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { wrongAtTheEnd } from './check-whole.ts'
import { answerFor, type Arrivals, healWhole, perform, type WholeScene } from './play-whole.ts'
import { type WholeStep, wholeScript } from './whole-script.ts'
import { openWholeTheatre, quick, type WholeTheatre } from './whole-theatre.ts'
import { emptied } from './world.ts'

/** Here chance decides when things happen too: a seed brings the script back, but not always its failure. */
const runs = Number(process.env['INORDER_MODEL_WHOLE_RUNS'] ?? 60)
const seed = Number(process.env['INORDER_MODEL_SEED'] ?? 1)
const longestMs = 120_000 + runs * 5000

describe('two relays with their own timers', () => {
  let arrivals: Arrivals = newArrivals()
  let theatre: WholeTheatre
  beforeAll(async () => {
    theatre = await openWholeTheatre((event) => answerFor(arrivals, event.eventId))
  })
  afterAll(() => theatre[Symbol.asyncDispose]())

  async function play(steps: readonly WholeStep[]): Promise<void> {
    await theatre.pool.query(emptied)
    arrivals = newArrivals()
    const relays = [theatre.relay(quick), theatre.relay(quick)]
    const scene: WholeScene = {
      theatre,
      arrivals,
      open: [[], [], []],
      relays,
      written: [],
      story: [],
      disturbed: false,
    }
    try {
      for (const relay of relays) await relay.start()
      for (const step of steps) await perform(scene, step)
      await healWhole(scene)
    } finally {
      for (const relay of relays) await relay.stop()
      for (const writer of theatre.writers) await writer.query('rollback')
    }
    const wrong = await wrongAtTheEnd(scene)
    if (wrong !== undefined) throw new Error([wrong, ...scene.story].join('\n'))
  }

  it('keep their promises in whatever order things happen', { timeout: longestMs + 60_000 }, async () => {
    let steps = 0
    const property = fc.asyncProperty(wholeScript, async (script) => {
      steps += script.length
      await play(script)
    })
    const began = performance.now()
    const plugins = [fc.interruptAfterTimeLimit(longestMs)]
    const details = await fc.check(property, { seed, numRuns: runs, plugins })
    if (details.failed || details.interrupted) {
      const message = details.errorInstance instanceof Error ? details.errorInstance.stack : 'it took too long'
      throw new Error(`INORDER_MODEL_SEED=${details.seed} (sequence ${details.numRuns})\n${message ?? ''}`)
    }
    console.log(`seed ${seed}: ${runs} sequences, ${steps} steps, ${Math.round(performance.now() - began)} ms`)
  })
})

function newArrivals(): Arrivals {
  return { ids: [], mood: 'takes', events: 0, doubts: 0, refusals: 0 }
}
