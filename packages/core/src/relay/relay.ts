import { setMaxListeners } from 'node:events'
import { OutboxError } from '../contract/errors.ts'
import type { RelaySignal } from '../contract/signals.ts'
import type { SqlConnector } from '../contract/sql-client.ts'
import type { RelaySettings } from '../options.ts'
import type { Names } from '../storage/names.ts'
import { createEngine, type Engine } from './engine.ts'
import { createPace, pause, retryPauseMs } from './pace.ts'
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
   * @throws OutboxError SCHEMA_MISSING, SCHEMA_BEHIND, SCHEMA_CHANGED, TOPICS_OVERLAP, DATABASE_UNREACHABLE, RELAY_STATE.
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
  let trouble: RelayHealth['database'] = { ok: true, cause: undefined }

  function emit(signal: RelaySignal): void {
    if (signal.kind === 'settled') {
      counts.published += signal.published
      counts.counted += signal.counted
      counts.failed += signal.failed
    } else if (signal.kind === 'found') lastFindAt = performance.now()
    else if (signal.kind === 'database') trouble = { ok: signal.ok, cause: signal.cause }
    settings.onSignal?.(signal)
  }

  function onFailed(signal: Extract<RelaySignal, { kind: 'failed' }>): void {
    emit(signal)
    const report = (cause: unknown): void => {
      emit({ kind: 'fault', what: 'onFailed threw', cause })
    }
    try {
      Promise.resolve(settings.onFailed?.(signal.event, signal.cause)).catch(report)
    } catch (error) {
      report(error)
    }
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
          if (idle && current.settler.waiting === 0 && !current.parked() && current.ownership.holds()) becameIdle()
          await pace.wait(Math.min(waitMs, probeMs))
        }
      } catch (error) {
        if (failures === 0) emit({ kind: 'database', use: 'find', ok: false, cause: error })
        await pause(retryPauseMs(failures), stopped)
        failures += 1
      }
    }
  }

  function becameIdle(): void {
    emit({ kind: 'idle' })
    for (const resolve of idleWaiters) resolve()
    idleWaiters.clear()
  }

  async function start(): Promise<void> {
    if (state !== 'new' && state !== 'stopped')
      throw new OutboxError('RELAY_STATE', `This relay is ${state}; a relay starts once until it is stopped.`)
    state = 'starting'
    halt = new AbortController()
    const stopped = halt.signal
    // Everything that waits listens to it, and Node takes more than ten listeners for a leak.
    setMaxListeners(0, stopped)
    const current = createEngine({
      client,
      names,
      settings,
      emit,
      onFailed,
      wake: pace.wake,
      closing: () => state === 'stopping',
      stopped,
    })
    try {
      await requireSchema(current.sessions.ownership, names)
      await current.ownership.start()
    } catch (error) {
      halt.abort()
      await closeSessions(current)
      state = 'stopped'
      throw error
    }
    engine = current
    state = 'running'
    current.link.start()
    loop = run(current, stopped)
    onRunning(true)
    emit({ kind: 'started', relay: current.ownership.relay })
  }

  async function stopNow(current: Engine, graceMs: number): Promise<void> {
    state = 'stopping'
    onRunning(false)
    const grace = new AbortController()
    const timer = setTimeout(() => {
      grace.abort()
      current.deadlines.abortAll(new Error('the relay stops'))
    }, graceMs)
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
    emit({ kind: 'stopped', relay: current.ownership.relay })
  }

  return {
    start,
    async stop({ graceMs = 10_000 } = {}) {
      if (stopping !== undefined) return stopping
      if (engine === undefined) return
      stopping = stopNow(engine, graceMs)
      try {
        await stopping
      } finally {
        stopping = undefined
      }
    },
    async drain({ signal } = {}) {
      const own = engine === undefined
      if (own) await start()
      await new Promise<void>((resolve) => {
        idleWaiters.add(resolve)
        signal?.addEventListener('abort', () => {
          resolve()
        })
        pace.wake()
      })
      if (own) await this.stop()
      return { ...counts }
    },
    wake: pace.wake,
    counts: () => ({ ...counts }),
    health: () => readRelayHealth({ state, engine, trouble, lastFindAt }),
    async [Symbol.asyncDispose]() {
      await this.stop()
    },
  }
}

async function closeSessions({ sessions }: Engine): Promise<void> {
  await Promise.all(Object.values(sessions).map((session) => session.close()))
}
