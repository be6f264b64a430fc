import type { OutboxEvent, Publisher, RunResult } from '@inorder/core'
import type { ConformanceSubject } from '../subject.ts'

/** A correct publisher with one thing done wrong, and the cases that must notice it. */
export interface BrokenPublisher {
  /** What is wrong, as its author would have put it. */
  readonly name: string
  /** The names of exactly those cases that fail with it. */
  readonly breaks: readonly string[]
  readonly wrap: (publisher: Publisher) => Publisher
}

/** The same subject with every publisher broken. It inherits the hooks, so that they keep the object they were made for. */
export function breakSubject(subject: ConformanceSubject, broken: BrokenPublisher): ConformanceSubject {
  const changed = Object.create(subject) as { -readonly [Name in keyof ConformanceSubject]: ConformanceSubject[Name] }
  changed.createPublisher = () => broken.wrap(subject.createPublisher())
  if (subject.createUnreachablePublisher !== undefined) {
    const create = subject.createUnreachablePublisher.bind(subject)
    changed.createUnreachablePublisher = () => broken.wrap(create())
  }
  return changed
}

/** Changes some members and leaves the rest, with `publish` seeing the correct one. */
export function replacing(publisher: Publisher, members: Partial<Publisher>): Publisher {
  return { ...publisher, ...members }
}

/** Changes each event before it is published. */
export function changing(change: (event: OutboxEvent) => Partial<OutboxEvent>): BrokenPublisher['wrap'] {
  return (publisher) =>
    replacing(publisher, {
      publish: (run, signal) =>
        publisher.publish(
          run.map((event) => ({ ...event, ...change(event) })),
          signal,
        ),
    })
}

/** Does something wrong with the outcome of a publish. */
export function after(
  change: (
    result: RunResult,
    run: readonly OutboxEvent[],
    again: (run: readonly OutboxEvent[]) => Promise<RunResult>,
    signal: AbortSignal,
  ) => RunResult | Promise<RunResult>,
): BrokenPublisher['wrap'] {
  return (publisher) =>
    replacing(publisher, {
      async publish(run, signal) {
        return change(await publisher.publish(run, signal), run, (others) => publisher.publish(others, signal), signal)
      },
    })
}
