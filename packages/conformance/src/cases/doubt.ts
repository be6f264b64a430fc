import type { CaseDefinition } from '../case.ts'
import { equal, expect, idsOf, why, within } from '../scene.ts'

/** Long enough for a request to be on its way to a local broker, short enough to keep the suite quick. */
const onItsWayMs = 200

/** What holds when nobody can know whether the broker has an event. */
export const doubtCases: readonly CaseDefinition[] = [
  {
    name: 'a retry after a lost acknowledgement keeps order and identity',
    needs: ['loseAcknowledgements'],
    async play(scene) {
      const { publisher, publish, publishUntilAcknowledged, during, readLater } = scene
      const [before, doubtful, after] = [
        scene.run(1),
        scene.run(Math.min(3, publisher.capabilities.maxRun)),
        scene.run(1),
      ]
      await publishUntilAcknowledged(before)
      const result = await during('loseAcknowledgements', () => publish(doubtful, AbortSignal.timeout(onItsWayMs)))
      expect(
        result.acknowledged === doubtful.length || result.failure?.kind === 'unknown',
        'an unknown outcome',
        why(result),
      )
      await publishUntilAcknowledged(doubtful.slice(result.acknowledged))
      await publishUntilAcknowledged(after)

      const events = [...before, ...doubtful, ...after]
      const delivered = idsOf(await readLater(events))
      equal([...new Set(delivered)], idsOf(events), 'First deliveries')
      const repeatable = publisher.capabilities.dedupe.by === 'broker' ? [] : idsOf(doubtful.slice(result.acknowledged))
      const repeated = delivered.filter((eventId, index) => delivered.indexOf(eventId) !== index)
      const unexplained = repeated.filter((eventId) => !repeatable.includes(eventId))
      equal(unexplained, [], 'Duplicates of events whose outcome was known')
    },
  },
  {
    name: 'a publish settles soon after its signal aborts, and acknowledges nothing that the broker did not',
    needs: ['stall'],
    async play({ event, publish, during, patienceMs }) {
      await during('stall', async () => {
        const result = await within(
          publish([event()], AbortSignal.timeout(onItsWayMs)),
          patienceMs,
          'an aborted publish to settle',
        )
        equal(result.acknowledged, 0, 'Acknowledged events of a broker that does not answer')
        const kind = result.failure?.kind
        expect(kind === 'unknown' || kind === 'unavailable', 'the outcome unknown or unavailable', why(result))
      })
    },
  },
  {
    name: 'what was given up on does not land after its successors',
    needs: ['stall'],
    exempts: ({ fence }) => (fence === 'none' ? 'its fence is none' : undefined),
    async play({ run, publish, publishUntilAcknowledged, during, readLater, patienceMs }) {
      const [first, second] = [run(1), run(1)]
      await during('stall', async (restore) => {
        await within(publish(first, AbortSignal.timeout(onItsWayMs)), patienceMs, 'an aborted publish to settle')
        await restore()
        await publishUntilAcknowledged(first)
        await publishUntilAcknowledged(second)
      })
      const delivered = idsOf(await readLater([...first, ...second]))
      const lastFirst = delivered.lastIndexOf(first[0]?.eventId ?? '')
      const firstSecond = delivered.indexOf(second[0]?.eventId ?? '')
      expect(lastFirst !== -1 && firstSecond !== -1, 'both events delivered', delivered)
      expect(lastFirst < firstSecond, 'every copy of the first event before the second', delivered)
    },
  },
]
