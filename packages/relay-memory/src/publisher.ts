import { setTimeout as delay } from 'node:timers/promises'
import {
  checkOptions,
  type Failure,
  functionOption,
  numberOption,
  type OutboxEvent,
  type Publisher,
  type PublisherCapabilities,
  type Receipt,
  type Rejection,
  type RunResult,
  textOption,
} from '@inorder/core'
import { inside, type MemoryBroker } from './broker.ts'

export interface MemoryPublisherOptions {
  /** Name in logs and in every delivery. Default `memory`. */
  readonly name?: string
  /** What can be down by itself. Must be pure and cheap. Default: the topic. */
  readonly destination?: (event: OutboxEvent) => string
  /** Most events of one lane in one call. Default 1,000, minimum 1. */
  readonly maxRun?: number
  /** Largest payload in bytes. Default 64 MiB, which is what the outbox table takes. Minimum 1. */
  readonly maxEventBytes?: number
}

/**
 * A publisher for a broker inside this process. An acknowledgement means that the broker recorded the event in memory.
 *
 * @throws OutboxError OPTIONS_INVALID, naming every option that is wrong.
 */
export function memoryPublisher(broker: MemoryBroker, options: MemoryPublisherOptions = {}): Publisher {
  checkOptions('memoryPublisher', options, {
    name: textOption({ maxBytes: 255 }),
    destination: functionOption(),
    maxRun: numberOption({ min: 1 }),
    maxEventBytes: numberOption({ min: 1 }),
  })
  const { name = 'memory', maxRun = 1000, maxEventBytes = 64 * 1024 * 1024 } = options
  const destination = options.destination ?? ((event: OutboxEvent): string => event.topic)
  const { faults, take, changed } = broker[inside]
  // The publishes that are on their way; undefined without a connection. Not one signal for all: Node warns when more
  // than ten listen to it, and its AbortSignal.any loses a timeout that was garbage collected.
  let connection: Set<AbortController> | undefined

  const capabilities: PublisherCapabilities = {
    maxEventBytes,
    maxRun,
    order: 'total',
    dedupe: { by: 'none', windowMs: 0 },
    fence: 'same-relay',
    tombstones: true,
    headers: true,
    confirms: 'memory',
  }

  function validate({ payload }: OutboxEvent): Rejection | undefined {
    const bytes = payload?.byteLength ?? 0
    return bytes <= maxEventBytes
      ? undefined
      : { reason: `The payload has ${String(bytes)} bytes, maxEventBytes is ${String(maxEventBytes)}` }
  }

  function deliver(event: OutboxEvent): Receipt {
    const to = destination(event)
    take(event, to, name)
    return { destination: to }
  }

  /** Why this event is not taken, asked when it is its turn. */
  function refusal(event: OutboxEvent): Failure | undefined {
    const to = destination(event)
    const rejection = validate(event)
    if (rejection !== undefined) return { kind: 'permanent', destination: to, cause: new Error(rejection.reason) }
    const outage = faults.unavailable(to)
    if (outage !== undefined) {
      outage.hit()
      const where = outage.destination === undefined ? {} : { destination: to }
      return { kind: 'unavailable', ...where, cause: new Error('The broker was switched to unavailable') }
    }
    const fault = faults.forEvent('reject', event)
    if (fault === undefined) return undefined
    fault.hit()
    const wait = fault.retryAfterMs === undefined ? {} : { retryAfterMs: fault.retryAfterMs }
    const kind = fault.outcome === 'permanent' ? 'permanent' : 'rejected'
    return { kind, destination: to, ...wait, cause: new Error('The broker was switched to reject this event') }
  }

  function publishCalmly(run: readonly OutboxEvent[]): RunResult {
    for (const [index, event] of run.entries()) {
      const failure = refusal(event)
      if (failure !== undefined) return { acknowledged: index, failure }
      deliver(event)
    }
    return { acknowledged: run.length }
  }

  async function publishWithFaults(run: readonly OutboxEvent[], stop: AbortSignal): Promise<RunResult> {
    const hang = faults.forRun('hang', run)
    if (hang !== undefined) {
      hang.hit()
      if (!(await before(stop, hang.ended))) {
        if (hang.afterGiveUp === 'deliver') void hang.ended.then(() => run.forEach(deliver)).then(changed)
        return unknown(0, stop.reason)
      }
    }
    const { perRunMs, perEventMs } = broker[inside].latency
    if (!(await pause(perRunMs, stop))) return unknown(0, stop.reason)

    const die = faults.forRun('die', run)
    die?.hit()
    let lostAt: number | undefined
    for (const [index, event] of run.entries()) {
      if (index === die?.delivered) break
      if (!(await pause(perEventMs, stop))) return unknown(lostAt ?? index, stop.reason)
      const failure = refusal(event)
      if (failure !== undefined)
        return lostAt === undefined ? { acknowledged: index, failure } : unknown(lostAt, failure.cause)
      deliver(event)
      changed()
      const lost = lostAt === undefined ? faults.forEvent('lose', event) : undefined
      lost?.hit()
      if (lost !== undefined) lostAt = index
    }
    if (die !== undefined) {
      const cause = new Error('The broker was switched to die in the middle of a run')
      if (die.outcome === 'throw') throw cause
      return unknown(0, cause)
    }
    if (lostAt !== undefined) return unknown(lostAt, new Error('The broker was switched to lose this acknowledgement'))
    const late = faults.forRun('late', run)
    late?.hit()
    if (late !== undefined && !(await pause(late.ms, stop))) return unknown(0, stop.reason)
    return { acknowledged: run.length }
  }

  async function publishInFlight(
    run: readonly OutboxEvent[],
    signal: AbortSignal,
    inFlight: Set<AbortController>,
  ): Promise<RunResult> {
    const stop = new AbortController()
    const giveUp = (): void => stop.abort(signal.reason)
    signal.addEventListener('abort', giveUp, { once: true })
    inFlight.add(stop)
    try {
      return await publishWithFaults(run, stop.signal)
    } finally {
      inFlight.delete(stop)
      signal.removeEventListener('abort', giveUp)
    }
  }

  return {
    name,
    capabilities,
    destination,
    validate,

    async connect(signal) {
      signal.throwIfAborted()
      if (faults.unavailable(undefined) !== undefined) throw new Error('The broker was switched to unavailable')
      connection ??= new Set()
    },

    async publish(run, signal) {
      if (connection === undefined)
        return { acknowledged: 0, failure: { kind: 'unavailable', cause: new Error('Not connected') } }
      if (signal.aborted) return { acknowledged: 0, failure: { kind: 'unavailable', cause: signal.reason } }
      if (!broker[inside].calm) return publishInFlight(run, signal, connection)
      const result = publishCalmly(run)
      changed()
      return result
    },

    async check() {
      const down = connection === undefined || faults.unavailable(undefined) !== undefined
      if (!down) return { ok: true, findings: [] }
      return {
        ok: false,
        findings: [
          {
            severity: 'error',
            what: 'Not connected, or the broker is unavailable',
            fix: 'Call connect, or end the fault',
          },
        ],
      }
    },

    async close() {
      const inFlight = connection ?? []
      connection = undefined
      for (const stop of inFlight) stop.abort(new Error('The publisher was closed'))
    },
  }
}

function unknown(acknowledged: number, cause: unknown): RunResult {
  return { acknowledged, failure: { kind: 'unknown', cause } }
}

/** Waits, and says whether the time passed before the signal aborted. Takes no turn of the event loop for 0. */
async function pause(ms: number, stop: AbortSignal): Promise<boolean> {
  if (stop.aborted || ms === 0) return !stop.aborted
  return delay(ms, true, { signal: stop }).catch(() => false)
}

/** Says whether the promise resolved before the signal aborted. */
async function before(stop: AbortSignal, promise: Promise<void>): Promise<boolean> {
  if (stop.aborted) return false
  let giveUp = (): void => undefined
  const aborted = new Promise<boolean>((resolve) => {
    giveUp = () => resolve(false)
    stop.addEventListener('abort', giveUp, { once: true })
  })
  const outcome = await Promise.race([promise.then(() => true), aborted])
  stop.removeEventListener('abort', giveUp)
  return outcome && !stop.aborted
}
