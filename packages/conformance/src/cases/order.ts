import type { CaseDefinition } from '../case.ts'
import { equal, expect, idsOf, why } from '../scene.ts'

/** Events of one lane stay in order, and lanes do not disturb each other. */
export const orderCases: readonly CaseDefinition[] = [
  {
    name: 'the longest run arrives complete and in order',
    needs: [],
    async play({ publisher, run, publishAll, read }) {
      // A tenth of a thousand is the default run of the relay; more would only make the suite slow.
      const events = run(Math.min(100, publisher.capabilities.maxRun))
      await publishAll(events)
      equal(idsOf(await read(events)), idsOf(events), 'Delivered events')
    },
  },
  {
    name: 'runs published after each other arrive in order',
    needs: [],
    async play({ publisher, run, publishAll, read }) {
      const events = Array.from({ length: 5 }, () => run(Math.min(5, publisher.capabilities.maxRun)))
      for (const part of events) await publishAll(part)
      equal(idsOf(await read(events.flat())), idsOf(events.flat()), 'Delivered events')
    },
  },
  {
    name: 'lanes published at once arrive complete, each in order',
    needs: [],
    async play({ publisher, run, publishAll, read }) {
      const length = Math.min(5, publisher.capabilities.maxRun)
      const lanes = Array.from({ length: 20 }, (_, lane) =>
        [0, 1, 2].map(() => run(length, { key: `lane-${String(lane)}` })),
      )
      await Promise.all(
        lanes.map(async (runs) => {
          for (const part of runs) await publishAll(part)
        }),
      )
      const delivered = await read(lanes.flat(2))
      for (const runs of lanes) {
        const events = runs.flat()
        const seen = delivered.filter(({ key }) => key === events[0]?.key)
        equal(idsOf(seen), idsOf(events), `Delivered events of the key ${String(events[0]?.key)}`)
      }
    },
  },
  {
    name: 'a refused event holds back no other lane',
    needs: ['poison'],
    async play({ subject, event, run, publish, read }) {
      const bad = await subject.poison?.(event({ key: 'bad' }))
      if (bad === undefined) return
      const good = ['good-1', 'good-2', 'good-3'].map((key) => run(1, { key }))
      const [refused, ...others] = await Promise.all([publish([bad]), ...good.map((events) => publish(events))])
      expect(refused.acknowledged === 0, 'the poisoned event not to be acknowledged', refused.acknowledged)
      for (const other of others)
        equal(other.acknowledged, 1, `Acknowledged events of a lane beside the refused one (${why(other)})`)
      const later = run(1, { key: 'good-1' })
      const after = await publish(later)
      equal(after.acknowledged, 1, `Acknowledged events of another lane after the refusal (${why(after)})`)
      equal(new Set(idsOf(await read([...good.flat(), ...later]))).size, 4, 'Delivered events of the other lanes')
    },
  },
]
