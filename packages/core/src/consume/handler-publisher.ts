import type { OutboxEvent } from '../contract/event.ts'
import {
  type DecodedEvent,
  type EventRegistry,
  type EventSchemas,
  nameIn,
  type Reading,
  readPayload,
} from '../contract/event-registry.ts'
import { functionOption, objectOption, optionProblems, refuseProblems, textOption } from '../contract/option-table.ts'
import type { Failure, Finding, Publisher, PublisherCapabilities, Rejection, RunResult } from '../contract/publisher.ts'
import { answerOf, failureOf } from './handler-answer.ts'
import { createLateCalls } from './late-calls.ts'

/** What a handler may need beside its event. */
export interface HandlerContext {
  /** Aborts when the relay's `publishTimeoutMs` is over, or the publisher closes. Pass it on to whatever is waited for. */
  readonly signal: AbortSignal
}

/**
 * Does what an event asks for. When it resolves the event is published; what it throws says what becomes of it:
 * `retryIn(ms)`, `retryAt(date)`, `transient(error)`, `permanent(error)`, or anything else, which is an attempt that
 * failed. It must be safe to run again for the same event: `processOnce` makes it so.
 */
export type Handler<Event = OutboxEvent> = (event: Event, context: HandlerContext) => unknown

export type Handlers = Readonly<Record<string, Handler>>

/** Of a registry or not; only the compiler knows what each of them gets. */
type AnyHandlers = Readonly<Record<string, Handler<never> | undefined>>

/** Handlers for the names of a registry; each gets its own payload, decoded. */
export type HandlersOf<Schemas extends EventSchemas> = {
  readonly [Name in keyof Schemas & string]?: Handler<
    Extract<DecodedEvent<Schemas, OutboxEvent>, { readonly name: Name }>
  >
}

export interface HandlerPublisherOptions<Schemas extends EventSchemas = never> {
  /** Name in logs and in errors. Default `handlers`. */
  readonly name?: string
  /** For events that no handler is named for. Default: they fail at once, because no retry would find one. */
  readonly otherwise?: Handler
  /** Decodes the payload before a handler gets it; what cannot be decoded fails at once. Default: bytes. */
  readonly events?: EventRegistry<Schemas>
}

const capabilities: PublisherCapabilities = {
  maxEventBytes: 64 * 1024 * 1024,
  // Each event has the whole of the deadline, and none that was handled is handled again for the sake of the next.
  maxRun: 1,
  order: 'key',
  dedupe: { by: 'none', windowMs: 0 },
  fence: 'same-relay',
  tombstones: true,
  headers: true,
  // As durable as what the handler did before it resolved.
  confirms: 'durable',
}

/**
 * A publisher whose broker is this process: a relay with it runs handlers in the order of each key, with backoff and
 * failed events. For background work, and for what an inbox has stored.
 *
 * An event goes to the handler of its type, or else of its topic. One key's events are handled one after the other;
 * different keys at once, as many as the relay's `maxInFlight` and `maxInFlightPerDestination` allow: set both to what a
 * pool of connections can serve.
 *
 * A handler has the relay's `publishTimeoutMs` (5,000 ms by default). Nothing can end a handler that ignores its signal:
 * what it does afterwards still happens, except what it does in a transaction that it does not commit, so look at the
 * signal before the commit. As long as it runs, this process does not start it again for the same event; a retry takes
 * over its result. Another relay, after a takeover, does start it: with `processOnce` it waits for the first one's
 * transaction.
 *
 * @example
 * const publisher = handlerPublisher({
 *   'order.placed': async (event, { signal }) => {
 *     const answer = await fetch('https://billing.example', { method: 'POST', body: event.payload, signal })
 *     if (answer.status === 429) throw retryIn(30_000)
 *     if (!answer.ok) throw new Error(`billing said ${answer.status}`)
 *   },
 * })
 * await outbox.relay({ publisher }).start()
 *
 * @throws OutboxError OPTIONS_INVALID with every problem in one error.
 */
export function handlerPublisher<Schemas extends EventSchemas>(
  handlers: HandlersOf<Schemas>,
  options: HandlerPublisherOptions<Schemas> & { readonly events: EventRegistry<Schemas> },
): Publisher
export function handlerPublisher(handlers: Handlers, options?: HandlerPublisherOptions): Publisher
export function handlerPublisher(
  handlers: AnyHandlers,
  options: HandlerPublisherOptions<EventSchemas> = {},
): Publisher {
  refuseBadHandlers(handlers, options)
  const { name = 'handlers', otherwise, events: registry } = options
  const named = new Map(Object.entries(handlers))
  const late = createLateCalls()
  /** The publishes on their way; undefined without a connection. */
  let open: Map<AbortController, Promise<RunResult>> | undefined

  /** Which handler an event is for. */
  function nameOf({ type, topic }: Pick<OutboxEvent, 'type' | 'topic'>): string | undefined {
    if (registry !== undefined) return nameIn(registry, type, topic)
    return [type, topic].find((each): each is string => each !== null && named.has(each))
  }

  function handlerOf(event: OutboxEvent): Handler<never> | undefined {
    const found = nameOf(event)
    return found === undefined ? undefined : named.get(found)
  }

  function validate(event: OutboxEvent): Rejection | undefined {
    const bytes = event.payload?.byteLength ?? 0
    if (bytes > capabilities.maxEventBytes) return { reason: `The payload has ${String(bytes)} bytes` }
    if (otherwise !== undefined || handlerOf(event) !== undefined) return undefined
    const type = event.type === null ? '' : `of type ${event.type} `
    return { reason: `There is no handler for events ${type}in topic ${event.topic}` }
  }

  /** Why an event was not handled; undefined when it was. Never rejects. */
  async function call(event: OutboxEvent, signal: AbortSignal): Promise<Failure | undefined> {
    const refusal = validate(event)
    if (refusal !== undefined) return { kind: 'permanent', cause: new Error(refusal.reason) }
    const handler = handlerOf(event)
    if (handler === undefined) return outcomeOf(async () => otherwise?.(event, { signal }), signal)
    if (registry === undefined) return outcomeOf(async () => handler(event as never, { signal }), signal)
    const read = await readPayload(registry, event)
    if ('problems' in read) return undecoded(read)
    return outcomeOf(async () => handler({ ...event, ...read } as never, { signal }), signal)
  }

  async function publishInOrder(run: readonly OutboxEvent[], signal: AbortSignal): Promise<RunResult> {
    let acknowledged = 0
    for (const event of run) {
      const failure = await late.goOn(event, signal, () => call(event, signal))
      if (failure !== undefined) return { acknowledged, failure }
      acknowledged += 1
    }
    return { acknowledged }
  }

  return {
    name,
    capabilities,
    validate,
    destination: (event) => nameOf(event) ?? event.topic,
    async connect(signal) {
      signal.throwIfAborted()
      open ??= new Map()
    },
    async publish(run, signal) {
      const current = open
      if (current === undefined || signal.aborted)
        return { acknowledged: 0, failure: { kind: 'unavailable', cause: signal.reason ?? new Error('Not connected') } }
      const stop = new AbortController()
      const abort = (): void => stop.abort(signal.reason)
      signal.addEventListener('abort', abort, { once: true })
      const published = publishInOrder(run, stop.signal)
      current.set(stop, published)
      try {
        return await published
      } finally {
        current.delete(stop)
        signal.removeEventListener('abort', abort)
      }
    },
    async check() {
      const findings: Finding[] = late.running().map((event) => ({
        severity: 'warning',
        what: `The handler of event ${event.eventId} (${nameOf(event) ?? event.topic}) still runs although its signal aborted`,
        fix: 'Pass the signal on to what the handler waits for, or give it more time with publishTimeoutMs',
      }))
      return { ok: true, findings }
    },
    async close() {
      const publishes = [...(open ?? [])]
      open = undefined
      for (const [stop] of publishes) stop.abort(new Error(`${name} was closed`))
      await Promise.all(publishes.map(([, published]) => published))
    },
  }
}

/** What a handler says by the way it ends. */
async function outcomeOf(handle: () => Promise<unknown>, signal: AbortSignal): Promise<Failure | undefined> {
  try {
    const returned = await handle()
    return answerOf(returned) === undefined ? undefined : failureOf(returned)
  } catch (thrown) {
    // A handler that was cut off, and does not say what its end means, may have done its work.
    if (signal.aborted && answerOf(thrown) === undefined) return { kind: 'unknown', cause: thrown }
    return failureOf(thrown)
  }
}

/** A payload that its schema refuses stays as it is; a schema that throws may do better the next time. */
function undecoded({ problems, ...thrown }: Extract<Reading, { problems: unknown }>): Failure {
  const what = problems.map(({ path, message }) => `${path} ${message}`).join('; ')
  return {
    kind: 'cause' in thrown ? 'rejected' : 'permanent',
    cause: new Error(`The event could not be decoded: ${what}`, thrown),
  }
}

function refuseBadHandlers(handlers: AnyHandlers, options: HandlerPublisherOptions<EventSchemas>): void {
  const problems = optionProblems(options, {
    name: textOption({ maxBytes: 255 }),
    otherwise: functionOption(),
    events: objectOption('definitions', 'parse', 'decode'),
  })
  const wrong = objectOption().check(handlers)
  if (wrong !== undefined) problems.push({ path: 'handlers', message: wrong })
  const names = Object.keys({ ...handlers })
  for (const name of names) {
    if (typeof handlers[name] !== 'function') problems.push({ path: name, message: 'must be a function' })
    if (problems.length === 0 && options.events !== undefined && !Object.hasOwn(options.events.definitions, name))
      problems.push({ path: name, message: 'is no event of the registry' })
  }
  if (names.length === 0 && options.otherwise === undefined && problems.length === 0)
    problems.push({ path: 'handlers', message: 'must name at least one handler' })
  refuseProblems('handlerPublisher', problems)
}
