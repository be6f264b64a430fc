import type { Publisher } from '../../src/contract/publisher.ts'
import { slotOf } from '../../src/contract/lane.ts'
import type { RelaySignal } from '../../src/contract/signals.ts'
import { readRelayOptions, type RelayOptions } from '../../src/options.ts'
import { createEngine, type Engine } from '../../src/relay/engine.ts'
import { namesOf } from '../../src/storage/names.ts'
import type { Run } from './broker.ts'
import type { Known } from './model.ts'
import { observeRelay, type Reading, type Scene } from './observer.ts'
import type { Stash } from './stash.ts'
import type { Traffic } from './traffic.ts'
import { createWire, type Wire } from './wire.ts'

/** The engine of a relay process without its loop: it looks when it is told to. */
export interface SteppedRelay {
  readonly name: string
  readonly engine: Engine
  readonly wire: Wire
  /** True while a look has not ended, because something of it is held. */
  readonly looking: boolean
  start(): Promise<void>
  /** One round of its loop. Says whether there was something to do, once that is over. */
  look(): Promise<boolean>
  /** One heartbeat. */
  beat(): void
  /** The process is gone. */
  die(): void
  /** It is stopped in good order, with nothing on its way. */
  leave(): Promise<void>
}

export interface SteppedRelayParts {
  readonly name: string
  readonly scene: Scene
  readonly stash: Stash
  readonly traffic: Traffic
  readonly options: Omit<RelayOptions, 'publisher'>
}

export function steppedRelay({ name, scene, stash, traffic, options }: SteppedRelayParts): SteppedRelay {
  const { broker, model, violation } = scene
  const read = new Map<Known, Reading>()
  const runs = new Map<string, Run>()
  const stopped = new AbortController()
  let closing = false
  let looking = false
  const wire = createWire(stash, traffic, observeRelay(scene, { name, registered: () => engine.ownership.relay, read }))

  /** Finds the run in what the engine has in flight, and checks a new one against what it read. */
  function runOf(event: Known): Run {
    const id = scene.laneIds.get(event.lane) ?? ''
    const lane = engine.lanes.get(id)
    const before = runs.get(id)
    if (lane === undefined) {
      violation(`relay ${name} publishes event ${event.number} of a lane that is not in flight`)
      throw new Error('not in flight')
    }
    if (before?.lane === lane) return before
    const known = lane.rows.flatMap((row) =>
      model.events.filter(({ eventId }) => eventId === row.eventId).map((each) => ({ row, each })),
    )
    const events = known.map(({ each }) => each)
    const may = read.get(event)?.runs.get(event.lane) ?? []
    if (
      !model.events.some((each) => each.lane === event.lane && each.byHand) &&
      events.some((each, index) => each !== may[index])
    )
      violation(`relay ${name} begins with ${list(events)} where ${list(may)} may be published`)
    const run: Run = {
      lane,
      events,
      rows: known.map(({ row: { requeues, attempts }, each }) => ({
        requeues,
        attempts,
        moves: read.get(each)?.moves ?? 0,
      })),
      owner: scene.slots.get(slotOf(id)),
      acknowledged: 0,
    }
    runs.set(id, run)
    return run
  }

  function emit(signal: RelaySignal): void {
    if (signal.kind === 'fault' && !/threw/.test(signal.what))
      violation(`relay ${name} reports a fault: ${signal.what}`)
  }

  const publisher: Publisher = broker.publisher(() => ({ name, runOf }))
  const engine = createEngine({
    client: wire,
    names: namesOf('outbox'),
    settings: readRelayOptions({ ...options, publisher }),
    emit,
    onFailed: emit,
    wake: () => undefined,
    closing: () => closing,
    stopped: stopped.signal,
  })

  async function closeSessions(): Promise<void> {
    const { find, settle, ownership, load } = engine.sessions
    await Promise.all([find, settle, ownership, load].map((session) => session.close()))
  }

  return {
    name,
    engine,
    wire,
    get looking() {
      return looking
    },
    async start() {
      await engine.ownership.start()
      engine.link.start()
    },
    async look() {
      looking = true
      engine.probe()
      try {
        return (await engine.finder.step()).worked
      } catch {
        return true
      } finally {
        looking = false
      }
    },
    beat() {
      engine.ownership.look()
    },
    die() {
      stopped.abort()
      wire.die()
    },
    async leave() {
      closing = true
      await engine.quiet()
      await engine.settler.idle(stopped.signal)
      stopped.abort()
      await engine.link.close()
      await engine.ownership.end()
      await closeSessions()
    },
  }
}

function list(events: readonly Known[]): string {
  return events.length === 0 ? 'nothing' : events.map(({ number }) => number).join(', ')
}
