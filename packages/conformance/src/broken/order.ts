import type { RunResult } from '@inorder/core'
import { after, type BrokenPublisher, replacing } from './broken-publisher.ts'

/** Publishers that lose the order of a lane, or go on behind a failure. */
export const brokenOrder: readonly BrokenPublisher[] = [
  {
    name: 'splits a long run in two batches and sends the second one first',
    breaks: ['the longest run arrives complete and in order'],
    wrap: (publisher) =>
      replacing(publisher, {
        async publish(run, signal) {
          if (run.length <= 50) return publisher.publish(run, signal)
          const batches = [run.slice(50), run.slice(0, 50)]
          const results = await Promise.all(batches.map((batch) => publisher.publish(batch, signal)))
          return { acknowledged: results.reduce((sum, { acknowledged }) => sum + acknowledged, 0) }
        },
      }),
  },
  {
    name: 'acknowledges the third run of a key and sends it behind the fourth',
    breaks: [
      'runs published after each other arrive in order',
      'lanes published at once arrive complete, each in order',
    ],
    wrap: (publisher) => {
      const published = new Map<string, number>()
      const overtaken = new Map<string, () => Promise<RunResult>>()
      return replacing(publisher, {
        async publish(run, signal) {
          if (run.length === 1) return publisher.publish(run, signal)
          const key = String(run[0]?.key)
          const turn = (published.get(key) ?? 0) + 1
          published.set(key, turn)
          if (turn === 3) {
            overtaken.set(key, () => publisher.publish(run, signal))
            return { acknowledged: run.length }
          }
          const result = await publisher.publish(run, signal)
          if (turn === 4) await overtaken.get(key)?.()
          return result
        },
      })
    },
  },
  {
    name: 'loses an event when lanes are published at once',
    breaks: ['lanes published at once arrive complete, each in order'],
    wrap: (publisher) => {
      let inFlight = 0
      return replacing(publisher, {
        async publish(run, signal) {
          inFlight++
          try {
            if (inFlight === 1 || run.length === 1) return await publisher.publish(run, signal)
            const result = await publisher.publish(run.slice(0, -1), signal)
            return result.failure === undefined ? { acknowledged: run.length } : result
          } finally {
            inFlight--
          }
        },
      })
    },
  },
  {
    name: 'takes one refused event for an outage',
    breaks: ['a refused event holds back no other lane'],
    wrap: (publisher) => {
      let outage: unknown
      return replacing(publisher, {
        async publish(run, signal) {
          if (outage !== undefined) return { acknowledged: 0, failure: { kind: 'unavailable', cause: outage } }
          const result = await publisher.publish(run, signal)
          if (result.failure?.kind === 'rejected') outage = result.failure.cause
          return result
        },
      })
    },
  },
  {
    name: 'skips a refused event at the start of a run',
    breaks: ['a refused event at the start of a run stops it there'],
    wrap: after(async (result, run, again) => {
      if (result.failure?.kind === 'rejected' && result.acknowledged === 0) await again(run.slice(1))
      return result
    }),
  },
  {
    name: 'sends what is behind a refused event',
    breaks: ['a refused event in the middle of a run stops it there'],
    wrap: after(async (result, run, again) => {
      if (result.failure?.kind === 'rejected' && result.acknowledged > 0)
        await again(run.slice(result.acknowledged + 1))
      return result
    }),
  },
  {
    name: 'acknowledges the batch when its last event was refused',
    breaks: ['a refused event at the end of a run stops it there'],
    wrap: after((result, run) => {
      const last = run.length > 1 && result.acknowledged === run.length - 1
      return last && result.failure?.kind === 'rejected' ? { acknowledged: run.length } : result
    }),
  },
  {
    name: 'retries an event that is too large',
    breaks: ['an event above maxEventBytes is permanent, and stops its run there'],
    wrap: after((result) => {
      if (result.failure?.kind !== 'permanent') return result
      return { ...result, failure: { ...result.failure, kind: 'rejected' } }
    }),
  },
]
