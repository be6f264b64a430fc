import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { OutboxEvent } from '@inorder/core'
import { after, type BrokenPublisher, replacing } from './broken-publisher.ts'

const settles = 'a publish settles soon after its signal aborts, and acknowledges nothing that the broker did not'
const fenced = 'what was given up on does not land after its successors'

/** Publishers that are wrong about what they cannot know. */
export const brokenDoubt: readonly BrokenPublisher[] = [
  {
    name: 'gives an event a new id when it is tried again',
    breaks: ['a retry after a lost acknowledgement keeps order and identity', fenced],
    wrap: (publisher) => {
      const unknown = new Set<string>()
      return replacing(publisher, {
        async publish(run, signal) {
          const renamed = run.map((event) => (unknown.has(event.eventId) ? { ...event, eventId: randomUUID() } : event))
          const result = await publisher.publish(renamed, signal)
          if (result.failure?.kind === 'unknown') for (const { eventId } of run) unknown.add(eventId)
          return result
        },
      })
    },
  },
  {
    name: 'waits for the broker whatever its signal says',
    breaks: [settles, fenced],
    wrap: (publisher) =>
      replacing(publisher, {
        publish: (run, signal) => publisher.publish(run, signal.aborted ? signal : new AbortController().signal),
      }),
  },
  {
    name: 'acknowledges what the broker was slow to acknowledge',
    breaks: [settles],
    wrap: (publisher) =>
      replacing(publisher, {
        publish: (run, signal) =>
          Promise.race([publisher.publish(run, signal), delay(100, { acknowledged: run.length }, { ref: false })]),
      }),
  },
  {
    name: 'keeps a publish that was given up on, and sends it when the broker is back',
    breaks: [fenced],
    wrap: (publisher) => {
      let zombie: readonly OutboxEvent[] = []
      let successes = 0
      return replacing(publisher, {
        async publish(run, signal) {
          const result = await publisher.publish(run, signal)
          if (result.failure?.kind === 'unknown' && signal.aborted) zombie = run
          else if (result.failure === undefined && zombie.length > 0) successes++
          if (successes === 2) await publisher.publish(zombie, signal)
          return result
        },
      })
    },
  },
  {
    name: 'reports a failure together with a complete run',
    breaks: ['a result names a failure exactly when it acknowledges less than the run'],
    wrap: after((result, run) =>
      result.acknowledged === run.length
        ? { ...result, failure: { kind: 'unknown', cause: new Error('Not sure') } }
        : result,
    ),
  },
]
