import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RunResult } from '@inorder/core'
import { type BrokenPublisher, replacing } from './broken-publisher.ts'

/** Publishers that start, describe themselves or end wrongly. */
export const brokenEnding: readonly BrokenPublisher[] = [
  {
    name: 'claims a dedupe window without deduplication',
    breaks: ['a publisher describes itself with usable values'],
    wrap: (publisher) =>
      replacing(publisher, { capabilities: { ...publisher.capabilities, dedupe: { by: 'none', windowMs: 300_000 } } }),
  },
  {
    name: 'sends retries to another destination',
    breaks: ['the destination of an event is pure and does not depend on how often it was tried'],
    wrap: (publisher) =>
      replacing(publisher, {
        destination: (event) => `${publisher.destination(event)}${event.attempt > 5 ? '-retry' : ''}`,
      }),
  },
  {
    name: 'is ok with an error among its findings',
    breaks: ['check names what is unsafe, each with its fix, and is not ok with an error among it'],
    wrap: (publisher) =>
      replacing(publisher, {
        check: () =>
          Promise.resolve({
            ok: true,
            findings: [{ severity: 'error', what: 'Eviction is on', fix: 'Switch it off' }],
          }),
      }),
  },
  {
    name: 'connects to a broker that is not there',
    breaks: ['connect rejects when the broker cannot be reached'],
    wrap: (publisher) =>
      replacing(publisher, { connect: (signal) => publisher.connect(signal).catch(() => undefined) }),
  },
  {
    name: 'throws when there is no connection',
    breaks: ['publish reports and never rejects, whatever state it is in'],
    wrap: (publisher) => {
      let connected = false
      return replacing(publisher, {
        async connect(signal) {
          await publisher.connect(signal)
          connected = true
        },
        async publish(run, signal) {
          if (!connected) throw new Error('Not connected')
          return publisher.publish(run, signal)
        },
      })
    },
  },
  {
    name: 'closes in the background',
    breaks: ['nothing lands once close has resolved'],
    wrap: (publisher) => {
      let closed = false
      const refused: RunResult = { acknowledged: 0, failure: { kind: 'unavailable', cause: new Error('Closed') } }
      return replacing(publisher, {
        async connect(signal) {
          await publisher.connect(signal)
          closed = false
        },
        async publish(run, signal) {
          if (closed) return refused
          for (let turn = 0; turn < 5; turn++) await nextTurn()
          return publisher.publish(run, signal)
        },
        async close() {
          closed = true
          await nextTurn()
          void nextTurn().then(async () => {
            for (let turn = 0; turn < 20; turn++) await nextTurn()
            if (closed) await publisher.close()
          })
        },
      })
    },
  },
  {
    name: 'waits in close for what the broker never answers',
    breaks: ['close resolves although the broker does not answer'],
    wrap: (publisher) => {
      const inFlight = new Set<Promise<RunResult>>()
      return replacing(publisher, {
        async publish(run, signal) {
          const outcome = publisher.publish(run, signal)
          inFlight.add(outcome)
          try {
            return await outcome
          } finally {
            inFlight.delete(outcome)
          }
        },
        async close() {
          await Promise.all(inFlight)
          await publisher.close()
        },
      })
    },
  },
  {
    name: 'rejects a second close',
    breaks: ['close can be called twice, also without a connection'],
    wrap: (publisher) => {
      let closed = false
      return replacing(publisher, {
        async connect(signal) {
          await publisher.connect(signal)
          closed = false
        },
        async close() {
          if (closed) throw new Error('Already closed')
          closed = true
          await publisher.close()
        },
      })
    },
  },
  {
    name: 'cannot be connected again',
    breaks: ['a closed publisher can be connected again'],
    wrap: (publisher) => {
      let closed = false
      return replacing(publisher, {
        async connect(signal) {
          if (closed) throw new Error('Closed')
          await publisher.connect(signal)
        },
        async close() {
          closed = true
          await publisher.close()
        },
      })
    },
  },
]
