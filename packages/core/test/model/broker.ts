import type { FailureKind, Publisher, RunResult } from '../../src/contract/publisher.ts'
import type { Lane } from '../../src/relay/lanes.ts'
import { testPublisher } from '../support/test-publisher.ts'
import { explain, type Known, type Model } from './model.ts'

/** A publish that waits for its answer. */
export interface Call {
  readonly relay: string
  readonly events: readonly Known[]
  readonly run: Run
  readonly answer: (result: RunResult) => void
  readonly fail: (cause: Error) => void
}

/** A run as its relay admitted it. */
export interface Run {
  readonly lane: Lane
  readonly events: readonly Known[]
  /** What each of them was when it was read. */
  readonly rows: readonly AsRead[]
  /** How its slot was owned then. */
  readonly owner: unknown
  acknowledged: number
}

/** An event as the row said that a relay read. */
export interface AsRead {
  readonly requeues: number
  readonly attempts: number
  /** How often it had been moved by then. */
  readonly moves: number
}

/** What the broker told a relay about one event. */
export interface Told {
  readonly relay: string
  readonly event: Known
  readonly kind: FailureKind | 'acknowledged'
  readonly requeues: number
  readonly attempts: number
  readonly run: Run
  /** For an unknown outcome: whether the destination acknowledged anything since the one before, if there was one. */
  readonly answering: boolean
  /** It reached the database. */
  settled: boolean
}

/** How the broker answers: how many events of the call it takes and says so, and what becomes of the next ones. */
export interface Answer {
  readonly acknowledged: number
  readonly failure?: FailureKind | 'broker unavailable' | 'thrown'
  /** Events behind those that arrive although the relay is not told so. */
  readonly beyond: number
}

/** What a broker must know of a relay process. */
export interface Caller {
  readonly name: string
  /** The run to which an event belongs that is being published. */
  runOf(event: Known): Run
}

export interface Broker {
  readonly calls: readonly Call[]
  readonly told: readonly Told[]
  publisher(caller: () => Caller): Publisher
  answer(call: Call, answer: Answer): void
  /** The relay died with this call on its way: so many of its events arrive, and nobody is told. */
  orphan(call: Call, arrived: number): void
}

export interface BrokerParts {
  readonly model: Model
  readonly violation: (what: string) => void
  readonly say: (what: string) => void
}

export function createBroker({ model, violation, say }: BrokerParts): Broker {
  let calls: Call[] = []
  const told: Told[] = []
  /** How many events each destination acknowledged to each relay. */
  const acknowledged = new Map<string, number>()
  /** That number when an unknown outcome of an event was told last. */
  const thenAcknowledged = new Map<string, number>()

  function asRead({ events, rows }: Run, event: Known): AsRead {
    return rows[events.indexOf(event)] ?? event
  }

  function deliver(event: Known, { relay, run }: Call): void {
    const { requeues, moves } = asRead(run, event)
    if (event.deliveries.length === 0) {
      const overtaken = event.before.find(
        ({ deliveries, excused, byHand }) => deliveries.length === 0 && !excused && !byHand,
      )
      if (overtaken !== undefined)
        violation(
          `event ${event.number} arrives before event ${overtaken.number}, which was committed before it was written`,
        )
    }
    const earlier = event.deliveries.filter((delivery) => delivery.requeues === requeues)
    if (earlier.some((delivery) => delivery.relay === relay && !delivery.explained) && !event.byHand)
      violation(`event ${event.number} arrives again, and nothing explains it`)
    event.deliveries.push({ relay, requeues, explained: event.moves !== moves })
  }

  function tell(call: Call, event: Known, kind: Told['kind']): void {
    const destination = `${call.relay} ${event.topic}`
    const count = acknowledged.get(destination) ?? 0
    if (kind === 'acknowledged') acknowledged.set(destination, count + 1)
    const { requeues, attempts } = asRead(call.run, event)
    const name = `${call.relay} ${event.number} ${requeues}`
    const then = thenAcknowledged.get(name)
    if (kind === 'unknown') thenAcknowledged.set(name, count)
    told.push({
      relay: call.relay,
      event,
      kind,
      requeues,
      attempts,
      run: call.run,
      answering: then !== undefined && count > then,
      settled: false,
    })
  }

  function end(call: Call): void {
    calls = calls.filter((each) => each !== call)
  }

  return {
    get calls() {
      return calls
    },
    told,
    publisher: (caller) =>
      testPublisher((given) => {
        const from = caller()
        const { name } = from
        const events = given.map(({ eventId }) => model.events.find((known) => known.eventId === eventId))
        const known = events.filter((event) => event !== undefined)
        const [head] = known
        if (head === undefined || known.length < events.length) {
          violation(`relay ${name} publishes an event that nobody wrote`)
          return { acknowledged: given.length }
        }
        const run = from.runOf(head)
        if (calls.some((call) => call.relay === name && call.run.lane.id === run.lane.id))
          violation(`relay ${name} publishes two runs of one lane at once`)
        const expected = run.events.slice(run.acknowledged, run.acknowledged + known.length)
        if (known.some((event, index) => event !== expected[index]))
          violation(`relay ${name} publishes ${numbers(known)} where its run goes on with ${numbers(expected)}`)
        say(`relay ${name} publishes ${numbers(known)}`)
        return new Promise((answer, fail) => {
          calls.push({ relay: name, events: known, run, answer, fail })
        })
      }),
    answer(call, { acknowledged: taken, failure, beyond }) {
      end(call)
      const unknown = failure === 'unknown' || failure === 'thrown'
      const arrived = call.events.slice(0, failure === undefined ? call.events.length : taken + (unknown ? beyond : 0))
      for (const event of arrived) deliver(event, call)
      // An adapter that throws says nothing of what it did: the outcome of the whole call is unknown.
      const sure = failure === 'thrown' ? 0 : taken
      for (const event of call.events.slice(0, sure)) tell(call, event, 'acknowledged')
      call.run.acknowledged += sure
      const stopped = call.events[sure]
      if (failure === undefined || stopped === undefined) {
        call.answer({ acknowledged: call.events.length })
        return
      }
      if (unknown) explain(call.events.slice(sure))
      if (failure === 'thrown') {
        tell(call, stopped, 'unknown')
        call.fail(new Error('the adapter threw'))
        return
      }
      const cause = new Error(`the broker says ${failure}`)
      if (failure === 'broker unavailable') {
        tell(call, stopped, 'unavailable')
        call.answer({ acknowledged: sure, failure: { kind: 'unavailable', cause } })
        return
      }
      tell(call, stopped, failure)
      const named = failure === 'unavailable' ? { destination: stopped.topic } : {}
      call.answer({ acknowledged: sure, failure: { kind: failure, cause, ...named } })
    },
    orphan(call, arrived) {
      end(call)
      for (const event of call.events.slice(0, arrived)) deliver(event, call)
      explain(call.events)
    },
  }
}

export function numbers(events: readonly Known[]): string {
  return events.length === 0 ? 'nothing' : events.map(({ number }) => number).join(', ')
}
