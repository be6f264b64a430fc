import type { OutboxEvent } from '@inorder/core'
import type { CaseDefinition } from '../case.ts'
import { equal, expect, idsOf, type Scene, why } from '../scene.ts'
import { mustBeWellFormed } from './description.ts'

const runLength = 5
const largestChecked = 64 * 1024 * 1024

/** Nothing behind an event that failed is delivered by the same call. */
export const prefixCases: readonly CaseDefinition[] = [
  ...(
    [
      ['at the start', 0],
      ['in the middle', 2],
      ['at the end', runLength - 1],
    ] as const
  ).map(
    ([where, index]): CaseDefinition => ({
      name: `a refused event ${where} of a run stops it there`,
      needs: ['poison'],
      exempts: ({ maxRun }) => (maxRun < runLength ? `maxRun is ${String(maxRun)}` : undefined),
      async play(scene) {
        const events = scene.run(runLength)
        const target = events[index]
        const bad = target === undefined ? undefined : await scene.subject.poison?.(target)
        if (bad === undefined) return
        equal(bad.eventId, target?.eventId, 'Event id of the poisoned event')
        await mustStopAt(scene, events.with(index, bad), index)
      },
    }),
  ),
  {
    name: 'an event above maxEventBytes is permanent, and stops its run there',
    needs: [],
    exempts: ({ maxEventBytes, maxRun }) => {
      if (maxRun < 3) return `maxRun is ${String(maxRun)}`
      return maxEventBytes > largestChecked ? `maxEventBytes is ${String(maxEventBytes)}, too much to try` : undefined
    },
    async play(scene) {
      const { publisher } = scene
      const events = scene.run(3)
      const large = scene.event({ payload: Buffer.alloc(publisher.capabilities.maxEventBytes + 1) })
      if (publisher.validate !== undefined) {
        expect(
          publisher.validate(large) !== undefined,
          'validate to refuse an event above maxEventBytes',
          'no rejection',
        )
        equal(publisher.validate(scene.event()), undefined, 'Rejection of an ordinary event')
      }
      const kind = await mustStopAt(scene, events.with(1, large), 1)
      equal(kind, 'permanent', 'Kind of the failure')
    },
  },
]

async function mustStopAt(scene: Scene, events: readonly OutboxEvent[], index: number): Promise<string> {
  const result = await scene.publish(events)
  equal(
    result.acknowledged,
    index,
    `Acknowledged events of a run whose event ${String(index)} is refused (${why(result)})`,
  )
  mustBeWellFormed(result, events.length)
  const { failure } = result
  expect(failure !== undefined, 'a failure for the refused event', result)
  expect(failure.kind !== 'unknown', 'an answer about the refused event', why(result))
  const delivered = new Set(idsOf(await scene.readLater(events)))
  const seen = events.map(({ eventId }) => delivered.has(eventId))
  equal(
    seen,
    events.map((_, position) => position < index),
    'Which events of the run were delivered',
  )
  return failure.kind
}
