/** Hours are the model's only unit of time: a script lets them pass, and no real wait comes near one. */
export type Hours = number

export type Status = 'open' | 'rolled back' | 'scheduled' | 'pending' | 'published' | 'failed' | 'held' | 'gone'

/** One delivery of an event, as the broker saw it. */
export interface Delivery {
  /** Which relay process delivered it. */
  readonly relay: string
  readonly requeues: number
  /** Something happened since that explains another one: its outcome was unknown, or the event or its slot was moved. */
  explained: boolean
}

/** An event as the model knows it. */
export interface Known {
  readonly number: number
  readonly eventId: string
  readonly topic: string
  readonly key: string | null
  /** What must stay in order with it. An event without an order of its own is alone in its lane. */
  readonly lane: string
  /** Events of its lane that were committed before its INSERT ran, or stand before it in its own transaction. */
  readonly before: readonly Known[]
  /** Row id, from its INSERT on. */
  readonly id: bigint
  status: Status
  /** When it may be tried, while it is scheduled or waits for its retry. */
  until: Hours | null
  attempts: number
  requeues: number
  readonly deliveries: Delivery[]
  /** It was scheduled, failed or taken away at some time, so later events of its lane may have gone before it. */
  excused: boolean
  /** How often it was taken out of what a relay may have in hand: rescheduled, or changed by hand. */
  moves: number
  /** Somebody changed its row by hand: only the slow sweep has to find it. */
  byHand: boolean
}

export interface Policy {
  readonly maxAttempts: number
  readonly onExhausted: 'continue' | 'hold'
  readonly retain: boolean
  readonly backoffBaseHours: Hours
  readonly backoffCapHours: Hours
}

export interface NewKnown {
  readonly topic: string
  readonly key: string | null
  readonly ordering: 'none' | 'total' | undefined
  readonly delayHours: Hours | undefined
}

/** What may be delivered of each lane, in order, at one moment. */
export type Runs = ReadonlyMap<string, readonly Known[]>

/** What the promises say about a few events. It knows no SQL, no find and no slot. */
export interface Model {
  readonly events: readonly Known[]
  readonly now: Hours
  readonly heldTopics: Set<string>
  readonly heldLanes: Set<string>
  /** An INSERT ran, behind others of its own transaction. */
  written(event: NewKnown, row: { readonly eventId: string; readonly id: bigint }, own: readonly Known[]): Known
  committed(events: readonly Known[]): void
  rolledBack(events: readonly Known[]): void
  pass(hours: Hours): void
  /** Puts in line what is due, and says how much that is. */
  promote(): number
  acknowledged(event: Known): void
  counted(event: Known, kind: string): void
  requeue(event: Known): void
  reschedule(event: Known, at: Hours | null): void
  discard(event: Known): void
  runs(): Runs
}

function laneOf({ topic, key, ordering }: NewKnown, number: number): string {
  if (ordering === 'total') return 'total'
  return ordering === 'none' || key === null ? `event ${number}` : `${topic}/${key}`
}

/** Whatever has arrived of these may arrive again. */
export function explain(events: readonly Known[]): void {
  for (const { deliveries } of events) for (const delivery of deliveries) delivery.explained = true
}

export function isCommitted({ status }: Known): boolean {
  return status !== 'open' && status !== 'rolled back'
}

export function createModel(policy: Policy): Model {
  const events: Known[] = []
  const heldTopics = new Set<string>()
  const heldLanes = new Set<string>()
  let now = 0

  function inLine(): Map<string, Known[]> {
    const lanes = new Map<string, Known[]>()
    for (const event of events) {
      if (event.status !== 'pending' && event.status !== 'held') continue
      const lane = lanes.get(event.lane)
      if (lane === undefined) lanes.set(event.lane, [event])
      else lane.push(event)
    }
    for (const lane of lanes.values()) lane.sort((a, b) => (a.id < b.id ? -1 : 1))
    return lanes
  }

  const stops = ({ status, until, topic }: Known): boolean =>
    status === 'held' || until !== null || heldTopics.has(topic)

  return {
    events,
    get now() {
      return now
    },
    heldTopics,
    heldLanes,
    written(input, { eventId, id }, own) {
      const lane = laneOf(input, events.length + 1)
      const known: Known = {
        number: events.length + 1,
        eventId,
        topic: input.topic,
        key: input.key,
        lane,
        before: events.filter((event) => event.lane === lane && (own.includes(event) || isCommitted(event))),
        id,
        status: 'open',
        until: input.delayHours === undefined ? null : now + input.delayHours,
        attempts: 0,
        requeues: 0,
        deliveries: [],
        excused: input.delayHours !== undefined,
        moves: 0,
        byHand: false,
      }
      events.push(known)
      return known
    },
    committed(written) {
      for (const event of written) event.status = event.until === null ? 'pending' : 'scheduled'
    },
    rolledBack(written) {
      for (const event of written) event.status = 'rolled back'
    },
    pass(hours) {
      now += hours
    },
    promote() {
      const due = events.filter(
        ({ status, until }) => (status === 'scheduled' || status === 'pending') && until !== null && until <= now,
      )
      for (const event of due) Object.assign(event, { status: 'pending', until: null })
      return due.length
    },
    acknowledged(event) {
      event.status = policy.retain ? 'published' : 'gone'
      event.until = null
    },
    counted(event, kind) {
      event.attempts += 1
      if (kind === 'permanent' || event.attempts >= policy.maxAttempts) {
        event.status = policy.onExhausted === 'hold' ? 'held' : 'failed'
        event.until = null
        if (event.status === 'failed') event.excused = true
      } else {
        const longest = Math.min(policy.backoffCapHours, policy.backoffBaseHours * 2 ** (event.attempts - 1))
        event.until = now + longest * jitter
      }
    },
    requeue(event) {
      Object.assign(event, { status: 'pending', until: null, attempts: 0, requeues: event.requeues + 1 })
    },
    reschedule(event, at) {
      if (at === null) Object.assign(event, { status: 'pending', until: null })
      else if (event.attempts > 0) event.until = at
      else {
        Object.assign(event, { status: 'scheduled', until: at, excused: true, moves: event.moves + 1 })
        explain([event])
      }
    },
    discard(event) {
      Object.assign(event, { status: 'gone', until: null, excused: true })
    },
    runs() {
      const runs = new Map<string, readonly Known[]>()
      for (const [lane, rows] of inLine()) {
        const end = heldLanes.has(lane) ? 0 : rows.findIndex(stops)
        runs.set(lane, end === -1 ? rows : rows.slice(0, end))
      }
      return runs
    },
  }
}

/** Where the backoff ends within its jitter of a half, when chance always says a half. */
const jitter = 0.75
