import { setTimeout as delay } from 'node:timers/promises'
import { randomUUID } from 'node:crypto'
import {
  type Failure,
  type Health,
  orAbort,
  type OutboxEvent,
  type Publisher,
  type PublisherCapabilities,
  type Receipt,
  type Rejection,
  type RunResult,
} from '@inorder/core'
import { exchangeFailure, findingsOf, refused, unroutable } from './failure.ts'
import { type RabbitMqPublisherOptions, type Settings, settingsOf } from './options.ts'
import { bodyOf, propertiesOf, refusalOf } from './record.ts'
import { openSession, type Session } from './session.ts'

/**
 * A publisher for RabbitMQ. An acknowledgement means a publisher confirm of a message that a queue was found for: on disk for
 * a durable queue, on a majority of nodes for a quorum queue.
 *
 * @throws OutboxError OPTIONS_INVALID, naming every option that is wrong.
 *
 * @example
 * const publisher = rabbitMqPublisher({ url: 'amqp://localhost', exchange: 'orders' })
 */
export function rabbitMqPublisher(options: RabbitMqPublisherOptions): Publisher {
  const settings: Settings = settingsOf(options)
  // The same for all connections of this publisher, so that the server lets the next one in only after the last is gone.
  const lock = `${settings.name}.${randomUUID()}`
  const used = new Set<string>()
  let current: Session | undefined
  let recovery: Promise<void> | undefined
  let closing = new AbortController()
  let lastProblem: unknown = new Error('Not connected: call connect first')

  const capabilities: PublisherCapabilities = {
    maxEventBytes: settings.maxEventBytes,
    maxRun: settings.maxRun,
    order: settings.oneQueue ? 'total' : 'key',
    dedupe: { by: 'none', windowMs: 0 },
    fence: settings.fence,
    tombstones: true,
    headers: true,
    confirms: 'durable',
  }

  function destination(event: OutboxEvent): string {
    const exchange = settings.exchange(event)
    return exchange === '' ? settings.routingKey(event) : `${exchange}/${settings.routingKey(event)}`
  }

  function validate(event: OutboxEvent): Rejection | undefined {
    return refusalOf(event, settings.routingKey(event), settings.maxEventBytes)
  }

  async function open(...signals: AbortSignal[]): Promise<void> {
    const session = await openSession(settings, lock, [...signals, AbortSignal.timeout(settings.connectTimeoutMs)])
    if (current !== undefined || closing.signal.aborted) {
      session.destroy(new Error('Not needed any more'))
      return
    }
    current = session
    void session.ended.then((reason) => lose(session, reason))
  }

  function lose(session: Session, reason: unknown): void {
    if (current !== session) return
    current = undefined
    lastProblem = reason
    if (!closing.signal.aborted) recovery ??= recover().finally(() => (recovery = undefined))
  }

  async function recover(): Promise<void> {
    const { signal } = closing
    for (let tries = 0; current === undefined && !signal.aborted; tries++) {
      try {
        await open(signal)
      } catch (error) {
        lastProblem = error
        // 50 ms doubling to 1 s: a restart is noticed at once, and a long outage costs one attempt a second.
        await delay(Math.min(1000, 50 * 2 ** Math.min(tries, 5)), undefined, { signal }).catch(() => undefined)
      }
    }
  }

  /** Publishes one event and says what stopped it. */
  async function publishOne(event: OutboxEvent, signal: AbortSignal): Promise<Failure | undefined> {
    const where = destination(event)
    const rejection = validate(event)
    if (rejection !== undefined) return { kind: 'permanent', destination: where, cause: new Error(rejection.reason) }
    const session = current
    if (session === undefined) return { kind: 'unavailable', cause: lastProblem }
    if (session.blocked !== undefined)
      return { kind: 'unavailable', cause: new Error(`RabbitMQ takes nothing: ${session.blocked}`) }
    const exchange = settings.exchange(event)
    used.add(exchange)
    try {
      await orAbort(session.checkExchange(exchange), signal)
    } catch (error) {
      if (signal.aborted) return { kind: 'unavailable', destination: where, cause: signal.reason }
      return current === session ? exchangeFailure(error, exchange, where) : { kind: 'unavailable', cause: lastProblem }
    }
    if (signal.aborted) return { kind: 'unavailable', destination: where, cause: signal.reason }
    const properties = propertiesOf(event, settings.mandatory(event))
    // What is given up on stays on its way, in front of everything that this channel sends later: its successors cannot
    // overtake it, and trying it again waits for the same confirm.
    const answer = await orAbort(
      session.publish(exchange, settings.routingKey(event), bodyOf(event), properties),
      signal,
    ).catch((lost: unknown) => ({ lost }))
    if (answer === 'confirmed') return undefined
    if (answer === 'returned') return unroutable(where)
    if (answer === 'refused') return refused(where)
    return { kind: 'unknown', destination: where, cause: answer.lost }
  }

  async function publish(run: readonly OutboxEvent[], signal: AbortSignal): Promise<RunResult> {
    const receipts: Receipt[] = []
    try {
      while (receipts.length < run.length) {
        const window = windowOf(run.slice(receipts.length, receipts.length + settings.maxRunInFlight))
        const failures = await Promise.all(window.map((event) => publishOne(event, signal)))
        const stop = failures.findIndex((failure) => failure !== undefined)
        const done = stop === -1 ? window : window.slice(0, stop)
        receipts.push(...done.map((event) => ({ destination: destination(event) })))
        const failure = failures[stop]
        if (failure !== undefined) {
          // Behind it something of the window may be there already, which only this kind of failure admits.
          const kind = stop + 1 < window.length ? 'unknown' : failure.kind
          return { acknowledged: receipts.length, failure: { ...failure, kind }, receipts }
        }
      }
      return { acknowledged: receipts.length, receipts }
    } catch (error) {
      return { acknowledged: receipts.length, failure: { kind: 'unknown', cause: error }, receipts }
    }
  }

  /** The events from the start that may be on their way together: one that will be refused here goes alone. */
  function windowOf(events: readonly OutboxEvent[]): readonly OutboxEvent[] {
    if (events.length === 1) return events
    const invalid = events.findIndex((event) => validate(event) !== undefined)
    return invalid === -1 ? events : events.slice(0, Math.max(1, invalid))
  }

  async function check(): Promise<Health> {
    const session = current
    if (session === undefined) {
      const what = `Not connected: ${String(lastProblem)}`
      const finding = { severity: 'error' as const, what, fix: 'Start RabbitMQ, or correct the option url' }
      return { ok: false, findings: [finding] }
    }
    const missing: { exchange: string; error: unknown }[] = []
    for (const exchange of new Set([...settings.exchanges, ...used])) {
      await session.checkExchange(exchange).catch((error: unknown) => missing.push({ exchange, error }))
    }
    const { version, blocked } = session
    const findings = findingsOf({ version, blocked, missing }, { ...settings, mandatory: settings.alwaysMandatory })
    return { ok: findings.every(({ severity }) => severity !== 'error'), findings }
  }

  return {
    name: settings.name,
    capabilities,
    destination,
    validate,
    publish,
    check,

    async connect(signal) {
      if (closing.signal.aborted) closing = new AbortController()
      if (current !== undefined) return
      await open(signal, closing.signal)
      closing.signal.throwIfAborted()
    },

    async close() {
      closing.abort(new Error('The publisher was closed'))
      const session = current
      current = undefined
      session?.destroy(closing.signal.reason as Error)
      await recovery
    },
  }
}
