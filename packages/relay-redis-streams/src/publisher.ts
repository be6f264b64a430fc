import { setTimeout as delay } from 'node:timers/promises'
import type {
  Failure,
  Health,
  OutboxEvent,
  Publisher,
  PublisherCapabilities,
  Receipt,
  Rejection,
  RunResult,
} from '@inorder/core'
import { ReplyError } from 'ioredis'
import { failureOf, findingsOf, replyCode } from './failure.ts'
import { type RedisStreamsOptions, type Settings, settingsOf } from './options.ts'
import { appendArguments, streamOf } from './record.ts'
import {
  canSend,
  destroy,
  openSession,
  readServerSettings,
  replicaShortfall,
  runScript,
  type Session,
} from './session.ts'

/**
 * A publisher that appends to Redis Streams. An acknowledgement means that the entry is in the memory of the primary,
 * and with `waitReplicas` also in that of so many replicas.
 *
 * @throws OutboxError OPTIONS_INVALID, naming every option that is wrong.
 *
 * @example
 * const publisher = redisStreamsPublisher({ connection: 'redis://localhost:6379', shards: 8 })
 */
export function redisStreamsPublisher(options: RedisStreamsOptions): Publisher {
  const settings: Settings = settingsOf(options)
  const unfenced = new Set<Session>()
  let current: Session | undefined
  let recovery: Promise<void> | undefined
  let closing = new AbortController()
  let lastProblem: unknown = new Error('Not connected: call connect first')

  const capabilities: PublisherCapabilities = {
    maxEventBytes: settings.maxEventBytes,
    maxRun: settings.maxRun,
    order: settings.shards === 1 ? 'total' : 'key',
    dedupe: { by: 'none', windowMs: 0 },
    fence: settings.fence,
    tombstones: true,
    headers: true,
    confirms: settings.waitReplicas === undefined ? 'memory' : 'durable',
  }

  function destination(event: OutboxEvent): string {
    return streamOf(event, settings.stream(event), settings.shards)
  }

  function validate(event: OutboxEvent): Rejection | undefined {
    const bytes = event.payload?.byteLength ?? 0
    if (bytes <= settings.maxEventBytes) return undefined
    return { reason: `The payload has ${String(bytes)} bytes, maxEventBytes is ${String(settings.maxEventBytes)}` }
  }

  function adopt(session: Session): void {
    if (current !== undefined || closing.signal.aborted) {
      destroy(session.redis)
      return
    }
    current = session
    lastProblem = new Error('The connection to Redis is ending')
    const ended = (): void => retire(session, new Error('The connection to Redis was lost'))
    if (session.redis.status === 'ready') session.redis.once('end', ended)
    else ended()
  }

  /** Ends a session, however it came to that, and looks for another. What is in flight on it becomes unknown. */
  function retire(session: Session, reason: unknown): void {
    if (session.fenceWait !== undefined) return
    destroy(session.redis)
    if (session.inFlight === 0 || settings.fence === 'none') {
      session.fenceWait = Promise.resolve()
    } else {
      unfenced.add(session)
      const fenced = new Promise<void>((resolve) => (session.fenced = resolve))
      session.fenceWait = Promise.race([fenced, delay(settings.fenceTimeoutMs, undefined, { ref: false })])
    }
    if (current === session) current = undefined
    lastProblem = reason
    if (!closing.signal.aborted) recovery ??= recover().finally(() => (recovery = undefined))
  }

  async function recover(): Promise<void> {
    const { signal } = closing
    for (let tries = 0; current === undefined && !signal.aborted; tries++) {
      try {
        adopt(await openSession(settings, unfenced, [signal, AbortSignal.timeout(settings.connectTimeoutMs)]))
      } catch (error) {
        lastProblem = error
        // 50 ms doubling to 1 s: a restart is noticed at once, and a long outage costs one attempt a second.
        await delay(Math.min(1000, 50 * 2 ** Math.min(tries, 5)), undefined, { signal }).catch(noop)
      }
    }
  }

  async function append(stream: string, events: readonly OutboxEvent[], signal: AbortSignal): Promise<RunResult> {
    const args = appendArguments(events, settings.trim)
    const session = current
    if (session === undefined || !canSend(session.redis)) return stopped(0, { kind: 'unavailable', cause: lastProblem })
    session.inFlight++
    const giveUp = (): void => retire(session, signal.reason)
    signal.addEventListener('abort', giveUp, { once: true })
    try {
      const [ids, refusal] = await runScript(session, stream, args)
      const wanted = settings.waitReplicas
      const shortfall = wanted === undefined || ids.length === 0 ? undefined : await replicaShortfall(session, wanted)
      if (shortfall !== undefined) return stopped(0, { kind: 'unknown', destination: stream, cause: shortfall })
      const receipts = ids.map((position) => ({ destination: stream, position }))
      if (refusal === undefined) return { acknowledged: ids.length, receipts }
      return stopped(ids.length, refused(session, new Error(refusal), stream, 'entry'), receipts)
    } catch (error) {
      if (error instanceof ReplyError) return stopped(0, refused(session, error as Error, stream, 'script'))
      retire(session, error)
      await session.fenceWait
      return stopped(0, { kind: 'unknown', destination: stream, cause: signal.aborted ? signal.reason : error })
    } finally {
      signal.removeEventListener('abort', giveUp)
      session.inFlight--
    }
  }

  /** A replica stays one until somebody promotes it, so the next session asks the name service or Sentinel again. */
  function refused(session: Session, error: Error, stream: string, scope: 'script' | 'entry'): Failure {
    if (replyCode(error.message) === 'READONLY') retire(session, error)
    return failureOf(error, stream, scope)
  }

  async function publish(run: readonly OutboxEvent[], signal: AbortSignal): Promise<RunResult> {
    const receipts: Receipt[] = []
    try {
      let next = run[0]
      while (next !== undefined) {
        const stream = destination(next)
        const rejection = validate(next)
        if (rejection !== undefined) {
          return stopped(
            receipts.length,
            { kind: 'permanent', destination: stream, cause: new Error(rejection.reason) },
            receipts,
          )
        }
        if (signal.aborted) {
          return stopped(receipts.length, { kind: 'unavailable', destination: stream, cause: signal.reason }, receipts)
        }
        const rest = run.slice(receipts.length)
        const end = rest.findIndex((event) => destination(event) !== stream || validate(event) !== undefined)
        const result = await append(stream, end === -1 ? rest : rest.slice(0, end), signal)
        receipts.push(...(result.receipts ?? []))
        if (result.failure !== undefined) return stopped(receipts.length, result.failure, receipts)
        next = run[receipts.length]
      }
      return { acknowledged: receipts.length, receipts }
    } catch (error) {
      return stopped(receipts.length, { kind: 'unknown', cause: error }, receipts)
    }
  }

  async function check(): Promise<Health> {
    const redis = current?.redis
    if (redis === undefined) {
      const finding = {
        severity: 'error' as const,
        what: `Not connected: ${String(lastProblem)}`,
        fix: 'Start Redis, or correct the option connection',
      }
      return { ok: false, findings: [finding] }
    }
    const findings = findingsOf(await readServerSettings(redis), {
      trims: settings.trim !== undefined,
      fence: settings.fence,
      waitReplicas: settings.waitReplicas?.count ?? 0,
      maxEventBytes: settings.maxEventBytes,
    })
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
      const limits = [signal, closing.signal, AbortSignal.timeout(settings.connectTimeoutMs)]
      adopt(await openSession(settings, unfenced, limits))
      closing.signal.throwIfAborted()
    },

    async close() {
      closing.abort(new Error('The publisher was closed'))
      const session = current
      if (session !== undefined) retire(session, closing.signal.reason)
      await recovery
      if (unfenced.size > 0) {
        const last = await openSession(settings, unfenced, [AbortSignal.timeout(settings.fenceTimeoutMs)]).catch(noop)
        if (last !== undefined) destroy(last.redis)
      }
      if (session === undefined || session.redis.status === 'end') return
      await new Promise<void>((resolve) => session.redis.once('end', () => resolve()))
    },
  }
}

function stopped(acknowledged: number, failure: Failure, receipts: readonly Receipt[] = []): RunResult {
  return { acknowledged, failure, receipts }
}

function noop(): void {}
