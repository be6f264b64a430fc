import { setMaxListeners } from 'node:events'
import { OutboxError } from '../contract/errors.ts'
import type { RelaySignal } from '../contract/signals.ts'
import type { SqlConnector } from '../contract/sql-client.ts'
import type { RelaySettings } from '../options.ts'
import type { Names } from '../storage/names.ts'
import { createEngine, type Engine } from './engine.ts'
import { createPace, longestTimerMs, pause, retryPauseMs } from './pace.ts'
import { readRelayHealth, type RelayHealth } from './relay-health.ts'
import { requireSchema } from './require-schema.ts'

/** What a relay has done since it started. */
export interface RelayCounts {
  readonly published: number
  /** Counted failures, those after which an event was given up included. */
  readonly counted: number
  /** Events given up: failed or held. */
  readonly failed: number
}

export interface Relay extends AsyncDisposable {
  /**
   * Registers with the database, takes a share of the slots and begins to publish. Resolves before the broker is
   * reached: a broker that is down is waited for.
   *
   * @throws OutboxError SCHEMA_MISSING, SCHEMA_BEHIND, SCHEMA_CHANGED, SCHEMA_DENIED, SCHEMA_HIDDEN, TOPICS_OVERLAP,
   *   DATABASE_UNREACHABLE, RELAY_STATE.
   */
  start(): Promise<void>
  /**
   * Starts no more runs, and resolves when nothing is in flight: every outcome is written, the slots are released, the
   * publisher and the connections are closed. After `graceMs` (default 10,000) publishes that still run are aborted; if
   * the database cannot be reached either, what they acknowledged is published again later.
   */
  stop(options?: { readonly graceMs?: number }): Promise<void>
  /**
   * Publishes until nothing is due, then resolves with the counts. A relay that was not running starts for it and stops
   * afterwards: for tests, cron and serverless. Events that wait for a later time are left; a broker that is down is
   * waited for, until `signal` aborts.
   */
  drain(options?: { readonly signal?: AbortSignal }): Promise<RelayCounts>
  /** Something may have been committed: look at once. A hint, nothing is ever lost without it. */
  wake(): void
  counts(): RelayCounts
  health(): RelayHealth
}

export interface RelayParts {
  readonly client: SqlConnector
  readonly names: Names
  readonly settings: RelaySettings
  /** Called when the relay starts and stops, so that its outbox knows whom to wake. */
  readonly onRunning: (running: boolean) => void
}

export function createRelay({ client, names, settings, onRunning }: RelayParts): Relay {
  const pace = createPace(settings.pollMinMs, settings.pollMaxMs)
  const counts = { published: 0, counted: 0, failed: 0 }
  const idleWaiters = new Set<() => void>()
  let engine: Engine | undefined
  let state: RelayHealth['state'] = 'new'
  let loop: Promise<void> = Promise.resolve()
  let stopping: Promise<void> | undefined
  let halt = new AbortController()
  let lastFindAt: number | undefined
  let observerFault: unknown
  let starting: Promise<void> | undefined
  const troubles = new Map<string, unknown>()

  function emit(signal: RelaySignal): void {
    if (signal.kind === 'settled') {
      counts.published += signal.published
      counts.counted += signal.counted
      counts.failed += signal.failed
    } else if (signal.kind === 'found') lastFindAt = performance.now()
    else if (signal.kind === 'database') {
      const known = troubles.delete(signal.use)
      if (!signal.ok) troubles.set(signal.use, signal.cause)
      // Told once each way, however often it is tried; health has the latest cause.
      if (known === !signal.ok) return
    }
    callUser(() => settings.onSignal?.(signal), lastFault)
  }

  function onFailed(signal: Extract<RelaySignal, { kind: 'failed' }>): void {
    emit(signal)
    callUser(
      () => settings.onFailed?.(signal.event, signal.cause),
      (cause) => {
        emit({ kind: 'fault', what: 'onFailed threw', cause })
      },
    )
  }

  /** A fault of the observer cannot be told to the observer; health keeps the last one. */
  function lastFault(cause: unknown): void {
    observerFault = cause
  }

  async function run(current: Engine, stopped: AbortSignal): Promise<void> {
    let failures = 0
    while (!stopped.aborted) {
      try {
        const probeMs = current.probe()
        const { worked, waitMs, idle } = await current.finder.step()
        if (failures > 0) emit({ kind: 'database', use: 'find', ok: true, cause: undefined })
        failures = 0
        if (worked) pace.quicken()
        else {
          if (idle && current.settler.waiting === 0) becameIdle(current)
          await pace.wait(Math.min(waitMs, probeMs))
        }
      } catch (error) {
        emit({ kind: 'database', use: 'find', ok: false, cause: error })
        await pause(retryPauseMs(failures), stopped)
        failures += 1
      }
    }
  }

  /** Whoever drains is told only when nothing waits for a destination, and nothing due may belong to a dead relay. */
  function becameIdle({ parked, ownership }: Engine): void {
    emit({ kind: 'idle' })
    if (parked() || !ownership.holds() || !ownership.complete()) return
    for (const resolve of idleWaiters) resolve()
  }

  async function start(): Promise<void> {
    if (state !== 'new' && state !== 'stopped')
      throw new OutboxError('RELAY_STATE', `This relay is ${state}; a relay starts once until it is stopped.`)
    state = 'starting'
    onRunning(true)
    starting = startNow()
    try {
      await starting
    } catch (error) {
      state = 'stopped'
      onRunning(false)
      throw error
    } finally {
      starting = undefined
    }
  }

  async function startNow(): Promise<void> {
    requireSessions(client)
    halt = new AbortController()
    troubles.clear()
    const stopped = halt.signal
    // Everything that waits listens to it, and Node takes more than ten listeners for a leak.
    setMaxListeners(0, stopped)
    const closing = (): boolean => state === 'stopping'
    const current = createEngine({ client, names, settings, emit, onFailed, wake: pace.wake, closing, stopped })
    try {
      await requireSchema(current.sessions.ownership, names, settings)
      await current.ownership.start()
    } catch (error) {
      halt.abort()
      await closeSessions(current)
      throw error
    }
    engine = current
    state = 'running'
    current.link.start()
    current.purger.start()
    loop = run(current, stopped)
    emit({ kind: 'started', relay: current.ownership.relay })
  }

  async function stopNow(current: Engine, graceMs: number): Promise<void> {
    state = 'stopping'
    onRunning(false)
    const grace = new AbortController()
    const timer = setTimeout(
      () => {
        grace.abort()
        current.deadlines.abortAll(new Error('the relay stops'))
      },
      Math.min(graceMs, longestTimerMs),
    )
    try {
      // A publish ends by its own deadline; after the grace it is aborted and ends within the publisher's grace.
      await current.quiet()
      await current.settler.idle(grace.signal)
    } finally {
      clearTimeout(timer)
    }
    halt.abort()
    pace.wake()
    await loop
    await current.link.close()
    await current.ownership.end().catch((cause: unknown) => {
      // The lease runs out by itself.
      emit({ kind: 'database', use: 'ownership', ok: false, cause })
    })
    await closeSessions(current)
    engine = undefined
    state = 'stopped'
    for (const resolve of idleWaiters) resolve()
    emit({ kind: 'stopped', relay: current.ownership.relay })
  }

  /** Whatever is under way is waited for first: a relay that is starting is stopped as soon as it runs. */
  async function stop(graceMs: number): Promise<void> {
    await starting?.catch(() => undefined)
    if (engine !== undefined) await stopNow(engine, graceMs)
  }

  function untilIdle(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        idleWaiters.delete(done)
        signal?.removeEventListener('abort', done)
        resolve()
      }
      if (signal?.aborted === true || engine === undefined) {
        done()
        return
      }
      idleWaiters.add(done)
      signal?.addEventListener('abort', done)
      pace.wake()
    })
  }

  const relay: Relay = {
    start,
    async stop({ graceMs = 10_000 } = {}) {
      stopping ??= stop(graceMs).finally(() => {
        stopping = undefined
      })
      await stopping
    },
    async drain({ signal } = {}) {
      const own = state === 'new' || state === 'stopped'
      if (own) await start()
      else await starting
      await untilIdle(signal)
      if (own) await relay.stop()
      return { ...counts }
    },
    wake: pace.wake,
    counts: () => ({ ...counts }),
    health: () => readRelayHealth({ state, engine, troubles, lastFindAt, observerFault }),
    [Symbol.asyncDispose]: () => relay.stop(),
  }
  return relay
}

/** Calls a function of the user's; what it throws or rejects with never reaches the engine. */
function callUser(call: () => unknown, onFault: (cause: unknown) => void): void {
  try {
    const result = call()
    if (result instanceof Promise) result.catch(onFault)
  } catch (error) {
    onFault(error)
  }
}

/** Sessions that are kept at most: find, settle, ownership, large payloads, and the outbox's one for wake-ups. */
const keptSessions = 5

function requireSessions({ maxSessions = Infinity }: SqlConnector): void {
  if (maxSessions >= keptSessions) return
  throw new OutboxError(
    'OPTIONS_INVALID',
    `A relay keeps up to ${String(keptSessions)} connections of the pool, but its max is ${String(maxSessions)}. Give the relay a pool with a larger max.`,
  )
}

async function closeSessions({ sessions }: Engine): Promise<void> {
  const { find, settle, ownership, load } = sessions
  await Promise.all([find, settle, ownership, load].map((session) => session.close()))
}
