import { slotCount } from '../contract/lane.ts'
import type { RelaySignal } from '../contract/signals.ts'
import type { Names } from '../storage/names.ts'
import { deregisterStatement } from '../storage/register-relay.ts'
import {
  claimStatement,
  forgiveStatement,
  heartbeatStatement,
  readClaimed,
  readHeartbeat,
  releaseStatement,
} from '../storage/slots.ts'
import type { Lanes } from './lanes.ts'
import { notifyStatement } from '../storage/wake.ts'
import { pause, retryPauseMs } from './pace.ts'
import type { Session } from './session.ts'
import type { SlotTable } from './slot-table.ts'
import { decideSlots } from './slots.ts'

/** Keeps the lease of this relay and its share of the slots. */
export interface Ownership {
  /** Id under which this relay is registered; a relay whose lease expired comes back under a new one. */
  readonly relay: string
  /**
   * True while this relay may start to publish: from its first look at the slots on, and by its own clock from the
   * moment the last renewal was sent.
   */
  holds(): boolean
  /** Registers, takes the first slots and keeps renewing until `stopped` aborts. */
  start(): Promise<void>
  /**
   * True when everything that is due belongs to this relay or to one that is alive: it owns all slots, or it has been
   * here for longer than the lease of one that died before, and no slot was free at the last heartbeat.
   */
  complete(): boolean
  /** A slot that is being given up has no lane in flight any more, or may have none. */
  drained(): void
  /** Somebody gave slots back: looks at them now instead of with the next heartbeat. */
  look(): void
  /** Gives everything back at once, and tells the others. */
  end(): Promise<void>
  /** Renews no more: something that this relay started may still be written, so others must not wait for it. */
  abandon(): void
}

export interface OwnershipOptions {
  readonly session: Session
  readonly names: Names
  readonly group: string
  readonly leaseMs: number
  readonly slots: SlotTable
  readonly lanes: Lanes
  readonly emit: (signal: RelaySignal) => void
  /** Registers this relay and returns its new id. */
  readonly register: () => Promise<string>
  readonly onGained: () => void
  readonly onLost: (slots: readonly number[]) => void
  /** These slots were owned for a whole lease: whatever their owners died of before is over. */
  readonly onForgiven: (slots: readonly number[]) => void
  /** An operator let a topic go on: what was passed over has to be looked at again. */
  readonly onReleased: () => void
  readonly stopped: AbortSignal
}

/** A lease is renewed three times before it would expire. */
const renewalsPerLease = 3

/** How long after the end of another relay's lease to look whether it was renewed, in ms. */
const afterExpiryMs = 50

export function createOwnership(options: OwnershipOptions): Ownership {
  const { session, names, group, leaseMs, slots, lanes, emit, stopped } = options
  const beatMs = leaseMs / renewalsPerLease
  const heartbeat = heartbeatStatement(names)
  const claim = claimStatement(names)
  const release = releaseStatement(names)
  const forgive = forgiveStatement(names)
  /** Under which ids this process was registered before its lease ran out. */
  const before: string[] = []
  let isolation = 0
  let looking = false
  let othersUntil = Infinity
  let holdsVersion: string | undefined
  let relay = ''
  let deadline = 0
  let abandoned = false
  let joined = false
  let joinedAt = 0
  let free = 0
  let last: Promise<unknown> = Promise.resolve()

  /** A heartbeat and a release are several statements each; they take turns. */
  function inTurn(work: () => Promise<void>): Promise<void> {
    const done = last.then(work)
    last = done.catch(() => undefined)
    return done
  }

  async function register(): Promise<void> {
    joined = false
    const sent = performance.now()
    if (relay !== '') before.push(relay)
    relay = await options.register()
    deadline = sent + leaseMs
  }

  /** The beat right after registering takes what is free, but counts as no renewal: a relay that crashes at once takes no share. */
  async function beat(renewal: boolean): Promise<void> {
    if (abandoned) return
    const sent = performance.now()
    const answer = readHeartbeat((await session.run(heartbeat({ group, relay, leaseMs, beatMs, renewal }))).rows)
    if (!answer.renewed) {
      emit({ kind: 'lease-lost' })
      slots.clear()
      await register()
      return beat(false)
    }
    deadline = sent + leaseMs
    const { gained, lost } = slots.reconcile(answer.owned, sent)
    const decision = decideSlots({ ...answer, owned: slots.size - slots.draining })
    let claimed = 0
    if (decision.claim > 0) {
      const taken = readClaimed((await session.run(claim(group, relay, decision.claim, before))).rows)
      slots.gain(taken, sent)
      claimed = taken.length
    } else if (decision.giveUp > 0 && slots.draining === 0) {
      slots.drain(decision.giveUp, performance.now(), (slot) => !lanes.hasIn(slot))
    }
    if (gained + claimed > 0) options.onGained()
    if (gained + claimed + lost > 0) emit({ kind: 'slots', owned: slots.size, gained: gained + claimed, lost })
    if (!joined) joinedAt = sent
    joined = true
    free = answer.free - claimed
    if (holdsVersion !== undefined && holdsVersion !== answer.holdsVersion) options.onReleased()
    holdsVersion = answer.holdsVersion
    othersUntil = sent + answer.nextExpiryMs
    await forgiveClean(sent)
    if (slots.isolation !== isolation) emit({ kind: 'isolation', slots: slots.isolation })
    isolation = slots.isolation
    await releaseDrained()
  }

  async function forgiveClean(now: number): Promise<void> {
    const clean = slots.clean(now)
    if (clean.length === 0) return
    await session.run(forgive(group, relay, clean))
    slots.forgive(clean)
    options.onForgiven(clean)
  }

  /** Lanes at rest in a slot that is being given up are freed: nobody of this relay goes on with them. */
  async function releaseDrained(): Promise<void> {
    if (slots.draining === 0) return
    for (const lane of lanes.resting()) if (slots.isDraining(lane.slot)) lanes.remove(lane)
    const ready = slots.drainingSlots().filter((slot) => !lanes.hasIn(slot))
    if (ready.length === 0) return
    slots.releasing(ready)
    await session.run(release(group, relay, ready))
    for (const slot of ready) slots.lose(slot)
    options.onLost(ready)
    await announce()
    emit({ kind: 'slots', owned: slots.size, gained: 0, lost: ready.length })
  }

  /** A hint: whoever misses it sees the free slots with the next heartbeat. */
  async function announce(): Promise<void> {
    await session.run(notifyStatement(names.slotsChannel)).catch(() => undefined)
  }

  /** A lease that is going to run out before the next heartbeat is looked at when it does: its owner may be dead. */
  function nextBeatMs(): number {
    return Math.min(beatMs, Math.max(0, othersUntil - performance.now()) + afterExpiryMs)
  }

  async function loop(): Promise<void> {
    let failures = 0
    while (await pause(failures === 0 ? nextBeatMs() : Math.min(beatMs, retryPauseMs(failures)), stopped)) {
      try {
        await inTurn(() => beat(true))
        if (failures > 0) emit({ kind: 'database', use: 'ownership', ok: true, cause: undefined })
        failures = 0
      } catch (error) {
        emit({ kind: 'database', use: 'ownership', ok: false, cause: error })
        failures += 1
      }
    }
  }

  return {
    get relay() {
      return relay
    },
    holds: () => joined && performance.now() < deadline && !abandoned,
    async start() {
      await register()
      await inTurn(() => beat(false))
      void loop()
    },
    complete: () =>
      joined && (slots.size === slotCount || (free === 0 && performance.now() > joinedAt + leaseMs + beatMs)),
    drained() {
      // A release that fails is tried again with the next heartbeat.
      if (!stopped.aborted) inTurn(releaseDrained).catch(() => undefined)
    },
    look() {
      if (looking || stopped.aborted || deadline === 0) return
      looking = true
      void inTurn(() => {
        looking = false
        return beat(true)
      }).catch(() => undefined)
    },
    async end() {
      deadline = 0
      slots.clear()
      await inTurn(async () => {
        if (relay === '' || abandoned) return
        await session.run(deregisterStatement(names, relay))
        await announce()
      })
    },
    abandon() {
      abandoned = true
      deadline = 0
    },
  }
}
