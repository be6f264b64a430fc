import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { OutboxEvent, Publisher, RunResult } from '@inorder/core'
import { exampleEvent } from './example-event.ts'
import type { ConformanceSubject, Delivered, Restore } from './subject.ts'

const defaultPatienceMs = 5000
const defaultQuietMs = 100

/** What one case works with: a connected publisher of its own, and a topic that nobody else uses. */
export interface Scene {
  readonly subject: ConformanceSubject
  readonly publisher: Publisher
  readonly topic: string
  readonly patienceMs: number
  /** An event of this topic. `part` overrides anything; the key is `key-1` unless it does. */
  readonly event: (part?: Partial<OutboxEvent>) => OutboxEvent
  /** So many events of one key, in order. */
  readonly run: (length: number, part?: Partial<OutboxEvent>) => OutboxEvent[]
  /** Publishes with a signal that aborts when the patience is over. */
  readonly publish: (run: readonly OutboxEvent[], signal?: AbortSignal) => Promise<RunResult>
  /** Publishes and fails the case unless everything is acknowledged at once. */
  readonly publishAll: (run: readonly OutboxEvent[]) => Promise<void>
  /** Publishes again and again, each time what is not yet acknowledged, until everything is. */
  readonly publishUntilAcknowledged: (run: readonly OutboxEvent[]) => Promise<void>
  /** What reached the destinations of these events, one destination after the other. */
  readonly read: (events: readonly OutboxEvent[]) => Promise<Delivered[]>
  /** The same after a while in which late writes had time to land. Nothing signals that something did not happen. */
  readonly readLater: (events: readonly OutboxEvent[]) => Promise<Delivered[]>
  /** Breaks the broker with a hook, and mends it again when `work` is over, however it ends. */
  readonly during: <T>(hook: 'stall' | 'loseAcknowledgements', work: (restore: Restore) => Promise<T>) => Promise<T>
  readonly close: () => Promise<void>
}

/** Sets a scene, plays the case in it and takes it down. */
export async function playScene(subject: ConformanceSubject, play: (scene: Scene) => Promise<void>): Promise<void> {
  const publisher = subject.createPublisher()
  const patienceMs = subject.patienceMs ?? defaultPatienceMs
  const topic = `conformance-${randomUUID()}`
  const state = { closed: false }
  let issued = 0

  const scene: Scene = {
    subject,
    publisher,
    topic,
    patienceMs,
    event(part) {
      issued++
      return exampleEvent({ id: String(issued), topic, payload: Buffer.from(`{"n":${String(issued)}}`), ...part })
    },
    run: (length, part) => Array.from({ length }, () => scene.event(part)),
    publish: (run, signal) => publisher.publish(run, signal ?? AbortSignal.timeout(patienceMs)),
    async publishAll(run) {
      const result = await scene.publish(run)
      equal(result.acknowledged, run.length, `Acknowledged events of a run on a healthy broker (${why(result)})`)
    },
    async publishUntilAcknowledged(run) {
      const deadline = performance.now() + patienceMs
      let rest = run
      for (;;) {
        const result = await scene.publish(rest)
        rest = rest.slice(result.acknowledged)
        if (rest.length === 0) return
        if (performance.now() > deadline) assert.fail(`Expected the broker to be usable again, last saw ${why(result)}`)
        await delay(10)
      }
    },
    async read(events) {
      const destinations = new Set(events.map((event) => publisher.destination(event)))
      const delivered = await Promise.all([...destinations].map((destination) => subject.read(destination)))
      return delivered.flat()
    },
    async readLater(events) {
      await delay(subject.quietMs ?? defaultQuietMs)
      return scene.read(events)
    },
    async during(hook, work) {
      const undo = await subject[hook]?.()
      let restored = false
      const restore = async (): Promise<void> => {
        if (restored) return
        restored = true
        await undo?.()
      }
      try {
        return await work(restore)
      } finally {
        await restore()
      }
    },
    async close() {
      state.closed = true
      await within(publisher.close(), patienceMs, 'close to resolve')
    },
  }

  await subject.createTopic?.(topic)
  try {
    await publisher.connect(AbortSignal.timeout(patienceMs))
    await play(scene)
  } finally {
    if (!state.closed) await publisher.close()
  }
}

/** Resolves with the promise, or fails the case when it has not settled in time. */
export async function within<T>(promise: Promise<T>, ms: number, what: string): Promise<T> {
  const timer = new AbortController()
  const late = delay(ms, undefined, { signal: timer.signal }).then(() =>
    assert.fail(`Expected ${what} within ${String(ms)} ms, saw nothing`),
  )
  try {
    return await Promise.race([promise, late])
  } finally {
    timer.abort()
    late.catch(() => undefined)
  }
}

/**
 * Fails with both values spelled out, so that the message alone says what was expected and what was seen. Of two lists
 * it shows what follows the part that they share.
 */
export function equal(seen: unknown, expected: unknown, what: string): void {
  if (isDeepStrictEqual(seen, expected)) return
  if (!Array.isArray(seen) || !Array.isArray(expected)) {
    assert.fail(`${what}: expected ${show(expected)}, saw ${show(seen)}`)
  }
  const differs = expected.findIndex((value, index) => !isDeepStrictEqual(value, seen[index]))
  const from = differs === -1 ? expected.length : differs
  const lengths = `${String(expected.length)} and saw ${String(seen.length)}`
  const parts = `expected ${show(expected.slice(from, from + 5))}, saw ${show(seen.slice(from, from + 5))}`
  assert.fail(`${what}: expected ${lengths}; from position ${String(from)} on ${parts}`)
}

/** Fails unless the condition holds. */
export function expect(condition: boolean, expected: string, seen: unknown): asserts condition {
  if (!condition) assert.fail(`Expected ${expected}, saw ${show(seen)}`)
}

export function idsOf(events: readonly { readonly eventId: string }[]): string[] {
  return events.map(({ eventId }) => eventId)
}

/** The outcome in words, for messages. */
export function why(result: RunResult): string {
  const { failure } = result
  return failure === undefined
    ? `${String(result.acknowledged)} acknowledged`
    : `${failure.kind}: ${String(failure.cause)}`
}

function show(value: unknown): string {
  const text = JSON.stringify(value, (_, inner: unknown) => (inner === undefined ? '(undefined)' : inner))
  return text.length > 400 ? `${text.slice(0, 400)}… (${String(text.length)} characters)` : text
}
