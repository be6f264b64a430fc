import { OutboxError } from '../contract/errors.ts'
import type { Failure } from '../contract/publisher.ts'

/** When an event that could not be handled is tried again, as its handler wants it; null leaves it to the backoff. */
type Again = { readonly inMs: number } | { readonly at: Date } | null

interface Answer {
  readonly kind: 'rejected' | 'transient' | 'permanent'
  readonly again: Again
}

/** Not `instanceof`: handlers may come from a package with a copy of this library of its own. */
const answer: unique symbol = Symbol.for('inorder.handler-answer') as never

class HandlerAnswer extends Error {
  override readonly name: string = 'HandlerAnswer'
  readonly [answer]: Answer

  constructor(what: string, cause: unknown, given: Answer) {
    super(what, cause === undefined ? undefined : { cause })
    this[answer] = given
  }
}

/** The longest that a relay waits because a publisher asks it to. */
const longestMs = 24 * 3600 * 1000

/**
 * Throw it in a handler: the event is tried again in so many milliseconds, which wins over the backoff. Counts an
 * attempt. From 0 to 24 hours.
 *
 * @throws OutboxError OPTIONS_INVALID for any other number; thrown by the handler, that counts as a failure like any.
 */
export function retryIn(ms: number, cause?: unknown): Error {
  if (!(typeof ms === 'number' && ms >= 0 && ms <= longestMs))
    throw new OutboxError(
      'OPTIONS_INVALID',
      `retryIn takes 0 to ${String(longestMs)} ms, which is a day, got ${String(ms)}`,
    )
  return new HandlerAnswer(`try again in ${String(ms)} ms`, cause, { kind: 'rejected', again: { inMs: ms } })
}

/**
 * The same at a moment of this process's clock; one that has passed is at once.
 *
 * @throws OutboxError OPTIONS_INVALID for an invalid date, and for one that is more than 24 hours ahead.
 */
export function retryAt(date: Date, cause?: unknown): Error {
  const time = date instanceof Date ? date.getTime() : Number.NaN
  if (!(time - Date.now() <= longestMs))
    throw new OutboxError('OPTIONS_INVALID', `retryAt takes a date within a day, got ${String(date)}`)
  return new HandlerAnswer(`try again at ${date.toISOString()}`, cause, {
    kind: 'rejected',
    again: { at: new Date(time) },
  })
}

/**
 * Throw it in a handler for what is no fault of the event, such as a service that is down. It is tried again until it
 * succeeds, and never counts an attempt, whatever other events do. Its key waits, with pauses that grow like the backoff,
 * and no other does. Those pauses are kept in memory: a relay that takes over tries at once. The handlers of up to
 * `maxInFlightPerDestination` keys can wait so at one time; the other keys of that handler then take turns with them.
 */
export function transient(cause?: unknown): Error {
  return new HandlerAnswer('not now', cause, { kind: 'transient', again: null })
}

/** Throw it in a handler: the event fails at once, and its key goes on without it. */
export function permanent(cause?: unknown): Error {
  return new HandlerAnswer('never', cause, { kind: 'permanent', again: null })
}

/** The answer that a handler threw, or returned because it forgot to throw it. */
export function answerOf(value: unknown): Answer | undefined {
  return typeof value === 'object' && value !== null && answer in value ? (value as HandlerAnswer)[answer] : undefined
}

/** What a thrown value says about the event: an answer, or else that it was rejected. */
export function failureOf(thrown: unknown): Failure {
  const given = answerOf(thrown)
  if (given === undefined) return { kind: 'rejected', cause: thrown ?? new Error('the handler threw nothing') }
  const cause = (thrown as HandlerAnswer).cause ?? thrown
  const wait = waitMs(given.again)
  const retry = wait === undefined ? {} : { retryAfterMs: wait }
  return { kind: given.kind, cause, ...retry }
}

function waitMs(again: Again): number | undefined {
  if (again === null) return undefined
  return 'inMs' in again ? again.inMs : Math.max(0, again.at.getTime() - Date.now())
}
