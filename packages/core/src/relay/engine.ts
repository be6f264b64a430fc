import type { RelaySignal } from '../contract/signals.ts'
import type { SqlConnector } from '../contract/sql-client.ts'
import type { RelaySettings } from '../options.ts'
import type { Names } from '../storage/names.ts'
import { createAdmission } from './admission.ts'
import { type Breakers, createBreakers } from './breaker.ts'
import { createCompletion } from './complete-run.ts'
import { createFinder, type Finder } from './finder.ts'
import { createIsolation } from './isolation.ts'
import { clearSuspect, type IsolatedRunOptions, publishIsolated } from './isolated-run.ts'
import { createLanes, type Lane, type Lanes } from './lanes.ts'
import { createOwnership, type Ownership } from './ownership.ts'
import type { Outcome } from './outcome.ts'
import { createParking } from './parking.ts'
import { createDeadlines, type Deadlines } from './pace.ts'
import { createPayloadLoader } from './payload-loader.ts'
import { createProbe } from './probe.ts'
import { publishRows, type RunContext } from './publish-run.ts'
import { createPublisherLink, type PublisherLink } from './publisher-link.ts'
import { registerRelay } from './register.ts'
import { createPurger, type Purger } from './purger.ts'
import { createSessions, type Sessions } from './sessions.ts'
import { createSettler, type Settler } from './settler.ts'
import { createSlotTable, type SlotTable } from './slot-table.ts'
import { createSuspects } from './suspects.ts'
import { createSweeper } from './sweeper.ts'

/** The parts of one running relay, wired together. Owns no timer and no loop. */
export interface Engine {
  readonly finder: Finder
  readonly settler: Settler
  readonly ownership: Ownership
  readonly link: PublisherLink
  readonly purger: Purger
  readonly lanes: Lanes
  readonly slots: SlotTable
  readonly breakers: Breakers
  /** Of the publishes that are on their way. */
  readonly deadlines: Deadlines
  /** Resolves when no run is being published. */
  quiet(): Promise<void>
  readonly sessions: Sessions
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
  const sessions = createSessions(client, names, settings, {
    wake,
    slotsFreed() {
      ownership.look()
    },
  })
  const lanes = createLanes(settings)
  const slots = createSlotTable(settings)
  const sweeper = createSweeper(slots)
  const parking = createParking()
  const isolation = createIsolation(slots)
  const breakers = createBreakers({ minMs: settings.breakerMinMs, maxMs: settings.breakerMaxMs })
  const deadlines = createDeadlines({ ms: settings.publishTimeoutMs, graceMs: settings.publishGraceMs })
  const quietWaiters = new Set<() => void>()
  let runs = 0
  const acknowledged = new Map<string, number>()

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
      isolation.forget(lost)
    },
    onForgiven(clean) {
      sweep(isolation.forget(clean))
    },
    onReleased() {
      sweeper.markAll()
      wake()
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
    acknowledged: settings.retainPublishedMs === 0 ? 'deleted' : 'kept',
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
    onRest(lane) {
      const isolated = isolation.ended(lane.id, lane.slot)
      if (isolated?.through === true) clearSuspect(lane, isolated.eventId, isolatedRuns)
      sweep(isolated?.next ?? [])
      if (slots.draining > 0) ownership.drained()
    },
  })
  const runContext: RunContext = {
    publisher,
    limits: { ...settings, maxRun: Math.min(settings.maxRun, publisher.capabilities.maxRun) },
    deadlines,
    emit,
    load: createPayloadLoader(sessions.load, names, emit),
    generation: () => link.generation,
    onStuck(cause, generation) {
      link.replace(cause, generation)
    },
    onAcknowledged(destination, events) {
      acknowledged.set(destination, (acknowledged.get(destination) ?? 0) + events)
      completion.answered(destination)
    },
  }
  const publish = (lane: Lane): Promise<Outcome> =>
    publishRows(lane.rows, runContext, {
      mayPublish: (destination) =>
        mayStart() &&
        slots.epoch(lane.slot) === lane.epoch &&
        (destination === lane.destination || breakers.closed(destination)),
      onProgress(acknowledged) {
        completion.progress(lane, acknowledged)
      },
    })
  const isolatedRuns: IsolatedRunOptions = {
    isolation,
    slots,
    suspects: createSuspects({
      session: sessions.ownership,
      names,
      group: settings.group,
      owner: () => ownership.relay,
    }),
    publish,
    onTrouble(cause) {
      emit({ kind: 'database', use: 'ownership', ok: false, cause })
    },
  }
  const admission = createAdmission({
    publisher,
    lanes,
    slots,
    sweeper,
    breakers,
    parking,
    isolation,
    open: mayStart,
    start(lane) {
      runs += 1
      const ended = (): void => {
        runs -= 1
        if (runs === 0) settleWaiters(quietWaiters)
      }
      const outcome = isolation.applies(lane.slot) ? publishIsolated(lane, isolatedRuns) : publish(lane)
      void outcome
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

  function sweep(marked: readonly number[]): void {
    for (const slot of marked) sweeper.mark(slot)
    wake()
  }

  function unpark(destinations: readonly string[]): void {
    sweep(destinations.flatMap((destination) => parking.release(destination)))
  }

  return {
    finder,
    settler,
    ownership,
    link,
    purger: createPurger({ session: sessions.load, names, retainMs: settings.retainPublishedMs, emit, stopped }),
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
    parked: () => parking.destinations().length > 0 || isolation.waiting > 0,
    probe: createProbe({ mayStart, isolation, parking, breakers, lanes, sweep, unpark }),
  }
}

function settleWaiters(waiters: Set<() => void>): void {
  for (const resolve of waiters) resolve()
  waiters.clear()
}
