import { handlerPublisher, type OutboxEvent, type Publisher, transient } from '@inorder/core'
import { describe, test } from 'vitest'
import { type ConformanceSubject, conformanceCases, type Delivered } from '../src/index.ts'

/** Whether the handlers end when their signal aborts, or go on until the stall is over. */
type Ears = 'heed their signal' | 'ignore their signal'

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}

/** The publisher whose broker is a handler: what it took note of is what was delivered. */
function subject(ears: Ears, maxRun: number, refusal: (cause: Error) => Error): ConformanceSubject {
  const delivered: Delivered[] = []
  const poisoned = new Set<string>()
  let stall: Promise<void> | undefined
  let losing = false

  async function handle(event: OutboxEvent, { signal }: { signal: AbortSignal }): Promise<void> {
    const stalled = stall
    await (ears === 'heed their signal' && stalled !== undefined ? Promise.race([stalled, aborted(signal)]) : stalled)
    if (ears === 'heed their signal' || stalled === undefined) signal.throwIfAborted()
    if (poisoned.has(event.eventId)) throw refusal(new Error('The handler was told to refuse this event'))
    delivered.push(event)
    if (losing) await aborted(signal)
  }

  return {
    createPublisher() {
      const publisher: Publisher = handlerPublisher({}, { otherwise: handle })
      return { ...publisher, capabilities: { ...publisher.capabilities, maxRun } }
    },
    read: (topic) => Promise.resolve(delivered.filter((event) => event.topic === topic)),
    poison(event) {
      poisoned.add(event.eventId)
      return event
    },
    loseAcknowledgements() {
      losing = true
      return () => {
        losing = false
      }
    },
    stall() {
      let end = (): void => undefined
      stall = new Promise((resolve) => (end = resolve))
      return () => {
        stall = undefined
        end()
      }
    },
    patienceMs: 1500,
    quietMs: 60,
  }
}

// A run of more than one event never reaches it from a relay, but it keeps the contract of one too.
describe.each<[Ears, string, number, (cause: Error) => Error]>([
  ['heed their signal', 'rejected', 1, (cause) => cause],
  ['heed their signal', 'rejected', 100, (cause) => cause],
  ['heed their signal', 'transient', 100, transient],
  ['ignore their signal', 'rejected', 1, (cause) => cause],
])('handlerPublisher, whose handlers %s and refuse as %s, in runs of %i', (ears, _, maxRun, refusal) => {
  for (const { name, skipped, run } of conformanceCases(subject(ears, maxRun, refusal)))
    test.skipIf(skipped !== undefined)(skipped === undefined ? name : `${name} (skipped: ${skipped})`, run)
})
