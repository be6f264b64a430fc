import { setTimeout as delay } from 'node:timers/promises'
import {
  coalesce,
  type Failure,
  firstAbort,
  orAbort,
  type Health,
  type OutboxEvent,
  type Publisher,
  type PublisherCapabilities,
  type Receipt,
  type Rejection,
  type RunResult,
  type Submit,
} from '@inorder/core'
import { findingsOf, metadataFailure, verdictOf } from './failure.ts'
import { type KafkaPublisherOptions, type Settings, settingsOf } from './options.ts'
import { partitionOf, recordBytes, recordOf } from './record.ts'
import { noop, openSession, type Session } from './session.ts'
import { createTopics } from './topics.ts'

/** Events of one call that go to one partition. */
interface Piece {
  readonly events: readonly OutboxEvent[]
  readonly bytes: number
  readonly signal: AbortSignal
}

/**
 * A publisher for Apache Kafka. An acknowledgement means that all in-sync replicas have the event (`acks: -1`).
 *
 * Give the relay a `publishTimeoutMs` of 30,000: a new leader takes the session timeout of a broker and an election,
 * about 9 s, and a publish that is given up on before makes duplicates only.
 *
 * @throws OutboxError OPTIONS_INVALID, naming every option that is wrong.
 *
 * @example
 * const publisher = kafkaPublisher({ config: { brokers: ['localhost:9092'] } })
 */
export function kafkaPublisher(options: KafkaPublisherOptions): Publisher {
  const settings: Settings = settingsOf(options)
  const lanes = new Map<string, Submit<Piece, RunResult>>()
  const sessions = new Set<Session>()
  let current: Session | undefined
  let recovery: Promise<void> | undefined
  /** The try to connect that runs now. */
  let attempt: Promise<unknown> | undefined
  let closing = new AbortController()
  let lastProblem: unknown = new Error('Not connected: call connect first')
  const topics = createTopics(settings, usable, () => lastProblem)

  const capabilities: PublisherCapabilities = {
    maxEventBytes: settings.maxEventBytes,
    maxRun: settings.maxRun,
    order: settings.partitions === 1 ? 'total' : 'key',
    dedupe: { by: 'none', windowMs: 0 },
    fence: 'none',
    tombstones: true,
    headers: true,
    confirms: 'durable',
  }

  function validate(event: OutboxEvent): Rejection | undefined {
    const bytes = recordBytes(event)
    if (bytes <= settings.maxEventBytes) return undefined
    return { reason: `The record has ${bytes} bytes, maxEventBytes is ${settings.maxEventBytes}` }
  }

  async function open(...signals: AbortSignal[]): Promise<void> {
    const session = await openSession(settings, [...signals, AbortSignal.timeout(settings.connectTimeoutMs)])
    if (current !== undefined || closing.signal.aborted) {
      session.destroy(new Error('Not needed any more'))
      return
    }
    current = session
    sessions.add(session)
  }

  /** Nothing more is sent on a session. What is on its way may end, unless it was given up on. */
  function retire(session: Session, reason: unknown, atOnce: boolean): void {
    if (current === session) {
      current = undefined
      lastProblem = reason
      if (!closing.signal.aborted) recovery ??= recover().finally(() => (recovery = undefined))
    }
    if (!atOnce && session.inFlight > 0) return
    sessions.delete(session)
    session.destroy(reason instanceof Error ? reason : new Error(String(reason)))
  }

  async function recover(): Promise<void> {
    const { signal } = closing
    for (let tries = 0; current === undefined && !signal.aborted; tries++) {
      try {
        attempt = open(signal)
        await attempt
      } catch (error) {
        lastProblem = error
        // 50 ms doubling to 1 s: a restart is noticed at once, and a long outage costs one attempt a second.
        await delay(Math.min(1000, 50 * 2 ** Math.min(tries, 5)), undefined, { signal }).catch(noop)
      }
    }
  }

  /** The session to send on. While one replaces another it is waited for, because that takes a moment only. */
  async function usable(signal: AbortSignal): Promise<Session | undefined> {
    if (current === undefined && recovery !== undefined) await orAbort(Promise.resolve(attempt), signal).catch(noop)
    return current
  }

  function laneOf(topic: string, partition: number): Submit<Piece, RunResult> {
    const name = `${topic} ${partition}`
    const existing = lanes.get(name)
    if (existing !== undefined) return existing
    // One batch on its way per partition: the next one could overtake it, or be taken for its repetition.
    const lane = coalesce<Piece, RunResult>({
      maxItems: 10_000,
      maxSize: settings.maxBatchBytes,
      sizeOf: ({ bytes }) => bytes,
      concurrency: 1,
      send: (pieces) => sendPieces(topic, partition, pieces),
    })
    lanes.set(name, lane)
    return lane
  }

  /** Sends pieces of several lanes as one batch. One that Kafka refuses is found by halving, and only its lane stops. */
  async function sendPieces(topic: string, partition: number, pieces: readonly Piece[]): Promise<RunResult[]> {
    const result = await sendBatch(topic, partition, pieces)
    if (result !== 'refused') return result
    const [only] = pieces
    if (only !== undefined && pieces.length === 1) return [await sendHalves(topic, partition, only)]
    const middle = Math.ceil(pieces.length / 2)
    const first = await sendPieces(topic, partition, pieces.slice(0, middle))
    return [...first, ...(await sendPieces(topic, partition, pieces.slice(middle)))]
  }

  async function sendHalves(topic: string, partition: number, { events, ...rest }: Piece): Promise<RunResult> {
    const middle = Math.ceil(events.length / 2)
    const receipts: Receipt[] = []
    for (const half of [events.slice(0, middle), events.slice(middle)]) {
      const [result] = await sendPieces(topic, partition, [{ ...rest, events: half }])
      receipts.push(...(result?.receipts ?? []))
      if (result?.failure !== undefined) return stopped(receipts, result.failure)
    }
    return { acknowledged: receipts.length, receipts }
  }

  /** One result for each piece; or that the batch of more than one event was refused for what one of them is. */
  async function sendBatch(
    topic: string,
    partition: number,
    pieces: readonly Piece[],
  ): Promise<RunResult[] | 'refused'> {
    const failAll = (failure: Failure): RunResult[] => pieces.map(() => stopped([], failure))
    const events = pieces.flatMap((piece) => piece.events)
    const deadline = firstAbort(pieces.map((piece) => piece.signal))
    const session = await usable(deadline.signal)
    if (session === undefined) return failAll({ kind: 'unavailable', cause: lastProblem })
    if (deadline.signal.aborted)
      return failAll({ kind: 'unavailable', destination: topic, cause: deadline.signal.reason })
    const giveUp = (): void => retire(session, deadline.signal.reason, true)
    deadline.signal.addEventListener('abort', giveUp, { once: true })
    session.inFlight += 1
    let outcome: { readonly offset: bigint } | { readonly error: unknown }
    try {
      const records = events.map((event) => recordOf(event, partition))
      const offset = await orAbort(session.send(topic, partition, records), deadline.signal)
      outcome = { offset }
    } catch (error) {
      outcome = { error }
    }
    session.inFlight -= 1
    deadline.release()
    if (current !== session) retire(session, lastProblem, false)
    if ('offset' in outcome) return acknowledged(topic, partition, pieces, outcome.offset)

    const { error } = outcome
    const verdict = hasAborted(deadline.signal) ? 'unknown' : verdictOf(error)
    if (verdict === 'topic') {
      topics.forget(topic)
      return failAll(metadataFailure(error, topic))
    }
    if (verdict === 'record') {
      return events.length > 1 ? 'refused' : failAll({ kind: 'permanent', destination: topic, cause: error })
    }
    retire(session, error, false)
    return failAll({ kind: 'unknown', destination: topic, cause: error })
  }

  async function publish(run: readonly OutboxEvent[], signal: AbortSignal): Promise<RunResult> {
    const receipts: Receipt[] = []
    try {
      for (;;) {
        const [next] = run.slice(receipts.length)
        if (next === undefined) return { acknowledged: receipts.length, receipts }
        const topic = settings.topic(next)
        const rejection = validate(next)
        if (rejection !== undefined)
          return stopped(receipts, { kind: 'permanent', destination: topic, cause: new Error(rejection.reason) })
        const partitions = await topics.partitionsOf(topic, signal)
        if (typeof partitions !== 'number') return stopped(receipts, partitions)
        const partition = partitionOf(next, partitions)
        const piece = pieceOf(run.slice(receipts.length), { topic, partition, partitions, signal })
        const result = await laneOf(topic, partition)(piece, signal)
        if (result === undefined)
          return stopped(receipts, { kind: 'unavailable', destination: topic, cause: signal.reason })
        receipts.push(...(result.receipts ?? []))
        if (result.failure !== undefined) return stopped(receipts, result.failure)
      }
    } catch (error) {
      return stopped(receipts, { kind: 'unknown', cause: error })
    }
  }

  /** The events from the start that go to the same partition, are valid and fit one batch. */
  function pieceOf(
    events: readonly OutboxEvent[],
    target: { topic: string; partition: number; partitions: number; signal: AbortSignal },
  ): Piece {
    let bytes = 0
    let count = 0
    for (const event of events) {
      const size = recordBytes(event)
      const here = settings.topic(event) === target.topic && partitionOf(event, target.partitions) === target.partition
      if (!here || size > settings.maxEventBytes || (count > 0 && bytes + size > settings.maxBatchBytes)) break
      bytes += size
      count += 1
    }
    return { events: events.slice(0, count), bytes, signal: target.signal }
  }

  async function check(): Promise<Health> {
    const session = await usable(AbortSignal.timeout(settings.connectTimeoutMs))
    if (session === undefined) {
      const what = `Not connected: ${String(lastProblem)}`
      return { ok: false, findings: [{ severity: 'error', what, fix: 'Start Kafka, or correct the option config' }] }
    }
    const findings = []
    for (const topic of new Set([...settings.topics, ...topics.known()])) {
      try {
        const described = await session.describe(topic)
        const partitionsBefore = topics.partitionsBefore(topic, described.partitions)
        findings.push(...findingsOf({ ...described, topic, partitionsBefore }, settings.maxEventBytes))
      } catch (error) {
        const what = `${topic}: ${String(metadataFailure(error, topic).cause)}`
        findings.push({ severity: 'error' as const, what, fix: 'Create the topic, or allow this user to describe it' })
      }
    }
    return { ok: findings.every(({ severity }) => severity !== 'error'), findings }
  }

  return {
    name: settings.name,
    capabilities,
    destination: settings.topic,
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
      await recovery
      const all = [...sessions]
      for (const session of all) retire(session, closing.signal.reason, true)
      await Promise.all(all.map((session) => session.ended))
    },
  }
}

function acknowledged(topic: string, partition: number, pieces: readonly Piece[], offset: bigint): RunResult[] {
  let next = offset
  return pieces.map(({ events }) => {
    const receipts = events.map(() => ({ destination: topic, position: `${partition}:${next++}` }))
    return { acknowledged: receipts.length, receipts }
  })
}

function stopped(receipts: readonly Receipt[], failure: Failure): RunResult {
  return { acknowledged: receipts.length, failure, receipts }
}

/** The same as `signal.aborted`, which the compiler takes for what it was before something was waited for. */
function hasAborted({ aborted: over }: AbortSignal): boolean {
  return over
}
