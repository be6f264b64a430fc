import type { RelaySignal } from '../contract/signals.ts'
import type { SqlConnector } from '../contract/sql-client.ts'
import type { RelaySettings } from '../options.ts'
import { loadPayloadsStatement, readPayloads } from '../storage/load-payloads.ts'
import type { Names } from '../storage/names.ts'
import { listenStatement } from '../storage/wake.ts'
import { createAdmission } from './admission.ts'
import { type Breakers, createBreakers } from './breaker.ts'
import { createCompletion } from './complete-run.ts'
import { createFinder, type Finder } from './finder.ts'
import { createLanes, type Lanes } from './lanes.ts'
import { createOwnership, type Ownership } from './ownership.ts'
import { createParking } from './parking.ts'
import { createDeadlines, type Deadlines } from './pace.ts'
import { publishRows, type RunContext } from './publish-run.ts'
import { createPublisherLink, type PublisherLink } from './publisher-link.ts'
import { registerRelay } from './register.ts'
import { createSession, type Session } from './session.ts'
import { createSettler, type Settler } from './settler.ts'
import { createSlotTable, type SlotTable } from './slot-table.ts'
import { createSweeper } from './sweeper.ts'

/** The parts of one running relay, wired together. Owns no timer and no loop. */
export interface Engine {
  readonly finder: Finder
  readonly settler: Settler
  readonly ownership: Ownership
  readonly link: PublisherLink
  readonly lanes: Lanes
  readonly slots: SlotTable
  readonly breakers: Breakers
  /** Of the publishes that are on their way. */
  readonly deadlines: Deadlines
  /** Resolves when no run is being published. */
  quiet(): Promise<void>
  readonly sessions: {
    readonly find: Session
    readonly settle: Session
    readonly ownership: Session
    readonly load: Session
  }
  /** Whether lanes were passed over because a destination takes nothing, or enough is in flight to it. */
  readonly parked: () => boolean
  /** When to look at destinations whose breaker is open again, in ms from now. */
  probe(): number
}

export interface EngineOptions {
  readonly client: SqlConnector
  readonly names: Names
  readonly settings: RelaySettings
  readonly emit: (signal: RelaySignal) => void
  readonly onFailed: (signal: Extract<RelaySignal, { kind: 'failed' }>) => void
  readonly wake: () => void
  /** True once no new run may start. */
  readonly closing: () => boolean
  readonly stopped: AbortSignal
}

export function createEngine(options: EngineOptions): Engine {
  const { client, names, settings, emit, wake, closing, stopped } = options
  const { publisher } = settings
  const timeoutMs = settings.statementTimeoutMs
  const sessions = {
    find: createSession(client, {
      timeoutMs,
      async onConnect(connection) {
        if (!settings.listen || connection.onNotification === undefined) return
        connection.onNotification((channel) => {
          if (channel === names.channel) wake()
        })
        await connection.run(listenStatement(names))
      },
    }),
    settle: createSession(client, { timeoutMs }),
    ownership: createSession(client, { timeoutMs: Math.min(timeoutMs, settings.leaseMs / 2) }),
    load: createSession(client, { timeoutMs }),
  }
  const lanes = createLanes(settings)
  const slots = createSlotTable({ drainMs: settings.leaseMs })
  const sweeper = createSweeper(slots)
  const parking = createParking()
  const breakers = createBreakers({ minMs: settings.breakerMinMs, maxMs: settings.breakerMaxMs })
  const deadlines = createDeadlines({ ms: settings.publishTimeoutMs, graceMs: settings.publishGraceMs })
  const quietWaiters = new Set<() => void>()
  let runs = 0
  const acknowledged = new Map<string, number>()
  let loadFailed = false
  const loadSql = loadPayloadsStatement(names)

  const ownership = createOwnership({
    session: sessions.ownership,
    names,
    group: settings.group,
    leaseMs: settings.leaseMs,
    slots,
    lanes,
    emit,
    register: () =>
      registerRelay(sessions.ownership, {
        names,
        group: settings.group,
        topics: settings.topics,
        leaseMs: settings.leaseMs,
      }),
    onGained: wake,
    onLost(lost) {
      for (const slot of lost) parking.forget(slot)
    },
    stopped,
  })
  const link = createPublisherLink({
    publisher,
    timeoutMs: settings.publishTimeoutMs + settings.publishGraceMs,
    emit,
    onReady() {
      unpark(parking.destinations())
    },
    onStuck() {
      ownership.abandon()
    },
  })
  const mayStart = (): boolean => link.state === 'ready' && ownership.holds() && !closing()
  const settler = createSettler({
    session: sessions.settle,
    names,
    group: settings.group,
    owner: () => ownership.relay,
    emit,
    stopped,
  })
  const completion = createCompletion({
    publisher,
    lanes,
    slots,
    sweeper,
    breakers,
    parking,
    settler,
    policy: {
      maxAttempts: settings.maxAttempts,
      backoff: { baseMs: settings.backoffBaseMs, capMs: settings.backoffCapMs },
      exhausted: settings.onExhausted === 'hold' ? 'held' : 'failed',
    },
    random: settings.random,
    acknowledgedBy: (destination) => acknowledged.get(destination) ?? 0,
    emit,
    onFailed: options.onFailed,
    onRest() {
      if (slots.draining > 0) ownership.drained()
      wake()
    },
  })
  const runContext: RunContext = {
    publisher,
    limits: { ...settings, maxRun: Math.min(settings.maxRun, publisher.capabilities.maxRun) },
    deadlines,
    emit,
    async load(ids) {
      try {
        const payloads = readPayloads((await sessions.load.run(loadSql(ids))).rows)
        if (loadFailed) emit({ kind: 'database', use: 'load', ok: true, cause: undefined })
        loadFailed = false
        return payloads
      } catch (cause) {
        if (!loadFailed) emit({ kind: 'database', use: 'load', ok: false, cause })
        loadFailed = true
        return undefined
      }
    },
    generation: () => link.generation,
    onStuck(cause, generation) {
      link.replace(cause, generation)
    },
    onAcknowledged(destination, events) {
      acknowledged.set(destination, (acknowledged.get(destination) ?? 0) + events)
      completion.answered(destination)
    },
  }
  const admission = createAdmission({
    publisher,
    lanes,
    slots,
    sweeper,
    breakers,
    parking,
    open: mayStart,
    start(lane) {
      runs += 1
      const progress = {
        mayPublish: (destination: string) =>
          mayStart() &&
          slots.epoch(lane.slot) === lane.epoch &&
          (destination === lane.destination || breakers.closed(destination)),
        onProgress(acknowledged: number) {
          completion.progress(lane, acknowledged)
        },
      }
      const ended = (): void => {
        runs -= 1
        if (runs === 0) settleWaiters(quietWaiters)
      }
      void publishRows(lane.rows, runContext, progress)
        .then((outcome) => {
          completion.end(lane, outcome)
        })
        .catch((cause: unknown) => {
          // Not to be reached; but a lane must not hang for ever for a fault of ours.
          emit({ kind: 'fault', what: 'a run could not be completed', cause })
          completion.abandon(lane)
        })
        .finally(ended)
    },
  })
  const finder = createFinder({ ...settings, session: sessions.find, names, lanes, slots, sweeper, admission, emit })

  function unpark(destinations: readonly string[]): void {
    for (const destination of destinations) for (const slot of parking.release(destination)) sweeper.mark(slot)
    wake()
  }

  return {
    finder,
    settler,
    ownership,
    link,
    lanes,
    slots,
    breakers,
    deadlines,
    quiet: () =>
      runs === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            quietWaiters.add(resolve)
          }),
    sessions,
    parked: () => parking.destinations().length > 0,
    probe() {
      if (!mayStart()) return Infinity
      const now = performance.now()
      let next = Infinity
      for (const destination of parking.destinations()) {
        if (breakers.closed(destination)) {
          // Enough in flight was the reason to wait.
          if (lanes.mostlyFree(destination)) unpark([destination])
          continue
        }
        const at = breakers.probeAt(destination)
        const slot = at <= now ? parking.takeOne(destination) : undefined
        if (slot !== undefined) sweeper.mark(slot)
        else next = Math.min(next, at - now)
      }
      return next
    },
  }
}

function settleWaiters(waiters: Set<() => void>): void {
  for (const resolve of waiters) resolve()
  waiters.clear()
}
