import type { OutboxEvent } from '../contract/event.ts'
import type { Publisher, Rejection } from '../contract/publisher.ts'
import type { RelaySignal } from '../contract/signals.ts'
import type { EventRow } from '../storage/event-row.ts'
import { outside, type Outcome, readOutcome } from './outcome.ts'
import { type Deadlines, late } from './pace.ts'
import type { LoadPayloads } from './payload-loader.ts'
import { toEvent, toSignalEvent } from './relay-event.ts'

export interface RunLimits {
  readonly maxRun: number
  readonly maxRunBytes: number
  readonly publishTimeoutMs: number
  readonly publishGraceMs: number
}

export interface RunContext {
  readonly publisher: Publisher
  readonly limits: RunLimits
  readonly deadlines: Deadlines
  readonly emit: (signal: RelaySignal) => void
  readonly load: LoadPayloads
  /** Which connection of the publisher a publish begins with. */
  readonly generation: () => number
  readonly onStuck: (cause: unknown, generation: number) => void
  /** A destination acknowledged so many events. */
  readonly onAcknowledged: (destination: string, events: number) => void
}

/** What the caller of `publishRows` decides while it goes on. */
export interface RunProgress {
  /** False as soon as nothing more of this lane may be published: its slot moves, the lease is over, the relay stops. */
  readonly mayPublish: (destination: string) => boolean
  /** So many events from the start are acknowledged, and more are on their way. */
  readonly onProgress: (acknowledged: number) => void
}

/**
 * Publishes the rows of one lane in order, in as many calls as the limits of a run ask for, until the first that is
 * not acknowledged. All rows come from one snapshot, so no older event of the lane can turn up between them. Never
 * rejects: what goes wrong is the outcome.
 */
export async function publishRows(
  rows: readonly EventRow[],
  context: RunContext,
  progress: RunProgress,
): Promise<Outcome> {
  let done = 0
  while (done < rows.length) {
    const chunk = await nextChunk(rows, done, context)
    if (chunk.events.length === 0) return { acknowledged: done, ...chunk.rest }
    if (!progress.mayPublish(chunk.destination)) return { acknowledged: done }
    if (done > 0) progress.onProgress(done)
    const outcome = await publishChunk(chunk, rows.slice(done, done + chunk.events.length), context)
    done += outcome.acknowledged
    if (outcome.failure !== undefined) return { ...outcome, acknowledged: done, destination: chunk.destination }
  }
  return { acknowledged: done }
}

/** How long a lane waits whose payloads could not be loaded. */
const loadRetryMs = 1000

interface Chunk {
  readonly events: readonly OutboxEvent[]
  readonly destination: string
  /** What becomes of the first row when there is nothing to publish. */
  readonly rest?: Pick<Outcome, 'failure' | 'pauseMs'>
}

/** The next events to hand over in one call: one destination, within count and bytes, ending before an impossible one. */
async function nextChunk(rows: readonly EventRow[], from: number, context: RunContext): Promise<Chunk> {
  const { limits, publisher } = context
  const wanted = takeRows(rows, from, limits)
  const missing = wanted.filter(({ payload, size }) => payload === null && size !== null)
  const payloads =
    missing.length === 0 ? new Map<string, Uint8Array>() : await context.load(missing.map(({ id }) => id))
  if (payloads === undefined) return { events: [], destination: '', rest: { pauseMs: loadRetryMs } }
  const events: OutboxEvent[] = []
  let destination = ''
  for (const row of wanted) {
    const payload = row.payload ?? payloads.get(row.id) ?? null
    // A row that is gone, or that could not be read, ends the run; the lane is read again.
    if (payload === null && row.size !== null) return { events, destination, rest: {} }
    const event = toEvent(row, payload)
    const where = destinationOf(event, publisher)
    const impossible = typeof where === 'string' ? whyImpossible(event, publisher) : where
    if (impossible !== undefined)
      return { events, destination, rest: { failure: { kind: 'permanent', cause: impossible } } }
    if (events.length > 0 && where !== destination) break
    destination = where as string
    events.push(event)
  }
  return { events, destination }
}

/** At least one row, then as many as fit. */
function takeRows(rows: readonly EventRow[], from: number, { maxRun, maxRunBytes }: RunLimits): EventRow[] {
  const taken: EventRow[] = []
  let bytes = 0
  for (let index = from; index < rows.length && taken.length < maxRun; index++) {
    const row = rows[index]
    if (row === undefined) break
    bytes += row.size ?? 0
    if (taken.length > 0 && bytes > maxRunBytes) break
    taken.push(row)
  }
  return taken
}

export function destinationOf(event: OutboxEvent, publisher: Publisher): string | Error {
  const unknown = `${publisher.name} cannot say where event ${event.eventId} of topic ${event.topic} goes`
  try {
    const destination: unknown = publisher.destination(event)
    return typeof destination === 'string' ? destination : new Error(`${unknown}: it says ${typeof destination}`)
  } catch (cause) {
    return new Error(unknown, { cause })
  }
}

function whyImpossible(event: OutboxEvent, publisher: Publisher): Error | undefined {
  const { maxEventBytes } = publisher.capabilities
  const bytes = event.payload?.byteLength ?? 0
  if (bytes > maxEventBytes)
    return new Error(`the payload has ${String(bytes)} bytes, ${publisher.name} takes at most ${String(maxEventBytes)}`)
  try {
    // Whatever is no reason in words is none: the broker decides, instead of every event failing for good.
    const reason: unknown = (publisher.validate?.(event) as Rejection | null | undefined)?.reason
    return typeof reason === 'string' ? new Error(reason) : undefined
  } catch (cause) {
    return new Error(`${publisher.name} could not validate the event`, { cause })
  }
}

async function publishChunk(
  { events, destination }: Chunk,
  rows: readonly EventRow[],
  context: RunContext,
): Promise<Outcome> {
  const { publisher, emit } = context
  const started = performance.now()
  const outcome = await callPublisher(events, context)
  if (outcome.acknowledged > 0) context.onAcknowledged(destination, outcome.acknowledged)
  if (outcome.fault !== undefined)
    emit({ kind: 'fault', what: `${publisher.name}: ${outcome.fault}`, cause: outcome.failure?.cause })
  emit({
    kind: 'published',
    destination,
    events: rows.map(toSignalEvent),
    acknowledged: outcome.acknowledged,
    failure: outcome.failure,
    durationMs: performance.now() - started,
  })
  return outcome
}

async function callPublisher(
  events: readonly OutboxEvent[],
  { publisher, limits, deadlines, generation, onStuck }: RunContext,
): Promise<Outcome> {
  const began = generation()
  // Before the call: an adapter may take the list apart as it goes.
  const { length } = events
  try {
    const result = await deadlines.run(async (signal) => publisher.publish(events, signal))
    if (result !== late) return readOutcome(result, length)
    const cause = new Error(
      `no answer of ${publisher.name} within ${String(limits.publishTimeoutMs + limits.publishGraceMs)} ms`,
    )
    onStuck(cause, began)
    return { acknowledged: 0, failure: { kind: 'unknown', cause } }
  } catch (error) {
    return outside('threw instead of reporting an outcome', error)
  }
}
