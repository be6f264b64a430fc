import { checkOptions, choiceOption, functionOption, numberOption, type OutboxEvent, textOption } from '@inorder/core'
import type { Delivery, Match } from './delivery.ts'
import { type Fault, type FaultList, faultList } from './faults.ts'
import { match, milliseconds, times } from './options.ts'

export interface MemoryBrokerOptions {
  /**
   * `all` keeps every delivery in memory, `count` only counts them, for benchmarks and long campaigns. Default `all`,
   * which costs about 300 bytes and the payload per event.
   */
  readonly recording?: 'all' | 'count'
  /** Called with every delivery in the order of arrival, before it is acknowledged. Must be quick. Default: nobody. */
  readonly onDelivery?: (delivery: Delivery) => void
}

export interface Latency {
  /** Time that each run takes, in milliseconds. Default 0: answered in a microtask. Minimum 0. */
  readonly perRunMs?: number
  /** Time that each event of a run takes, one after the other, in milliseconds. Default 0. Minimum 0. */
  readonly perEventMs?: number
}

/** A broker inside this process: it keeps what was published, in order, and fails in every way on command. */
export interface MemoryBroker {
  /** Everything that was delivered, oldest first. Empty with `recording: 'count'`. */
  readonly deliveries: readonly Delivery[]
  /** How many events were delivered. */
  readonly count: number
  /** What was delivered to one destination, oldest first. Empty with `recording: 'count'`. */
  to(destination: string): readonly Delivery[]
  /** How many events were delivered to one destination. */
  countTo(destination: string): number
  /**
   * Resolves as soon as the predicate holds; it is asked at once and after every delivery.
   *
   * @throws the reason of `signal` when it aborts first.
   */
  until(predicate: (broker: MemoryBroker) => boolean, options: { readonly signal: AbortSignal }): Promise<void>
  /**
   * Refuses events. `times` of them, default Infinity; `as` is the kind of the failure, default `rejected`;
   * `retryAfterMs` is passed on.
   */
  reject(
    match: Match,
    options?: { readonly times?: number; readonly as?: 'rejected' | 'permanent'; readonly retryAfterMs?: number },
  ): Fault
  /** Takes nothing for one destination, or with none named for all. `times` answers, default Infinity. */
  unavailable(options?: { readonly destination?: string; readonly times?: number }): Fault
  /**
   * Leaves runs unanswered until the fault ends; then they are delivered. A run that its publisher gave up on is
   * dropped, or with `afterGiveUp: 'deliver'` lands late, as at a broker without a fence.
   */
  hang(options?: { readonly match?: Match; readonly afterGiveUp?: 'drop' | 'deliver' }): Fault
  /** Delivers at once and acknowledges after `ms`. `times` runs, default Infinity. */
  acknowledgeLate(ms: number, options?: { readonly match?: Match; readonly times?: number }): Fault
  /** Delivers the run, and loses the acknowledgement from the matching event on. `times` runs, default 1. */
  loseAcknowledgement(options?: { readonly match?: Match; readonly times?: number }): Fault
  /**
   * Delivers the first `delivered` events of a run and breaks. The answer is `unknown` for the whole run, default, or
   * publish throws. `times` runs, default 1.
   */
  dieAfter(
    delivered: number,
    options?: { readonly match?: Match; readonly times?: number; readonly as?: 'unknown' | 'throw' },
  ): Fault
  /** Sets how long publishing takes from now on. */
  setLatency(latency: Latency): void
  /** Ends every fault and sets the latency to 0. Deliveries stay. */
  heal(): void
  /** Forgets all deliveries; `seq` goes on. */
  clear(): void
  /** For `memoryPublisher` only. */
  readonly [inside]: BrokerInside
}

export const inside: unique symbol = Symbol('inside')

export interface BrokerInside {
  readonly faults: FaultList
  readonly latency: Required<Latency>
  /** True when a publish can neither fail nor take time. */
  readonly calm: boolean
  readonly take: (event: OutboxEvent, destination: string, publisher: string) => void
  /** Tells those who wait in `until`. */
  readonly changed: () => void
}

interface Waiter {
  readonly predicate: (broker: MemoryBroker) => boolean
  readonly resolve: () => void
  readonly reject: (reason: unknown) => void
}

/**
 * Makes a broker inside this process. Several publishers can share it, as several relays share a real one.
 *
 * @throws OutboxError OPTIONS_INVALID here and in every fault switch.
 *
 * @example
 * const broker = memoryBroker()
 * const publisher = memoryPublisher(broker)
 */
export function memoryBroker(options: MemoryBrokerOptions = {}): MemoryBroker {
  checkOptions('memoryBroker', options, { recording: choiceOption('all', 'count'), onDelivery: functionOption() })
  const { recording = 'all', onDelivery } = options
  const faults = faultList()
  const waiters = new Set<Waiter>()
  const counts = new Map<string, number>()
  const byDestination = new Map<string, Delivery[]>()
  let deliveries: Delivery[] = []
  let seq = 0
  let total = 0
  let latency: Required<Latency> = { perRunMs: 0, perEventMs: 0 }

  function take(event: OutboxEvent, destination: string, publisher: string): void {
    seq++
    total++
    counts.set(destination, (counts.get(destination) ?? 0) + 1)
    if (recording === 'count' && onDelivery === undefined) return
    // Named one by one: spreading an event of this many fields took 20 to 30 microseconds on Node 20, this takes one.
    const delivery: Delivery = {
      seq,
      destination,
      at: performance.now(),
      publisher,
      id: event.id,
      eventId: event.eventId,
      topic: event.topic,
      key: event.key,
      type: event.type,
      payload: event.payload,
      contentType: event.contentType,
      headers: event.headers,
      attempt: event.attempt,
      requeues: event.requeues,
      createdAt: event.createdAt,
    }
    if (recording === 'all') {
      deliveries.push(delivery)
      const list = byDestination.get(destination)
      if (list === undefined) byDestination.set(destination, [delivery])
      else list.push(delivery)
    }
    onDelivery?.(delivery)
  }

  function changed(): void {
    for (const waiter of waiters) settle(waiter)
  }

  function settle(waiter: Waiter): void {
    try {
      if (waiter.predicate(broker)) waiter.resolve()
    } catch (error) {
      waiter.reject(error)
    }
  }

  const broker: MemoryBroker = {
    get deliveries() {
      return deliveries
    },
    get count() {
      return total
    },
    to: (destination) => byDestination.get(destination) ?? [],
    countTo: (destination) => counts.get(destination) ?? 0,
    async until(predicate, { signal }) {
      signal.throwIfAborted()
      const { promise, resolve, reject } = deferred()
      const waiter: Waiter = { predicate, resolve, reject }
      const giveUp = (): void => reject(signal.reason)
      signal.addEventListener('abort', giveUp, { once: true })
      waiters.add(waiter)
      settle(waiter)
      try {
        await promise
      } finally {
        waiters.delete(waiter)
        signal.removeEventListener('abort', giveUp)
      }
    },
    reject(which, given = {}) {
      checkOptions(
        'reject',
        { match: which, ...given },
        { match, times, as: choiceOption('rejected', 'permanent'), retryAfterMs: milliseconds },
      )
      return faults.add('reject', given.times ?? Infinity, {
        match: which,
        outcome: given.as ?? 'rejected',
        retryAfterMs: given.retryAfterMs,
      })
    },
    unavailable(given = {}) {
      checkOptions('unavailable', given, { destination: textOption({ maxBytes: 4096 }), times })
      return faults.add('unavailable', given.times ?? Infinity, { destination: given.destination })
    },
    hang(given = {}) {
      checkOptions('hang', given, { match, afterGiveUp: choiceOption('drop', 'deliver') })
      return faults.add('hang', Infinity, { match: given.match, afterGiveUp: given.afterGiveUp ?? 'drop' })
    },
    acknowledgeLate(ms, given = {}) {
      checkOptions('acknowledgeLate', { ms, ...given }, { ms: milliseconds, match, times })
      return faults.add('late', given.times ?? Infinity, { ms, match: given.match })
    },
    loseAcknowledgement(given = {}) {
      checkOptions('loseAcknowledgement', given, { match, times })
      return faults.add('lose', given.times ?? 1, { match: given.match })
    },
    dieAfter(delivered, given = {}) {
      checkOptions(
        'dieAfter',
        { delivered, ...given },
        { delivered: numberOption({ min: 0 }), match, times, as: choiceOption('unknown', 'throw') },
      )
      return faults.add('die', given.times ?? 1, { delivered, match: given.match, outcome: given.as ?? 'unknown' })
    },
    setLatency(given) {
      checkOptions('setLatency', given, { perRunMs: milliseconds, perEventMs: milliseconds })
      latency = { perRunMs: given.perRunMs ?? 0, perEventMs: given.perEventMs ?? 0 }
    },
    heal() {
      faults.endAll()
      latency = { perRunMs: 0, perEventMs: 0 }
    },
    clear() {
      deliveries = []
      byDestination.clear()
      counts.clear()
      total = 0
    },
    [inside]: {
      faults,
      take,
      changed,
      get latency() {
        return latency
      },
      get calm() {
        return !faults.some && latency.perRunMs === 0 && latency.perEventMs === 0
      },
    },
  }
  return broker
}

function deferred(): { promise: Promise<void>; resolve: () => void; reject: (reason: unknown) => void } {
  let resolve = (): void => undefined
  let reject: (reason: unknown) => void = () => undefined
  const promise = new Promise<void>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}
