import { type AnswerCounts, attemptFaults, type EventState } from './attempts.ts'
import { type Arrival, type Departure, explainDuplicates, type LostAcknowledgement } from './explain.ts'
import { proveOrder, type Proof, type Written } from './order-proof.ts'
import type { StandOptions } from './stand-options.ts'

/** What a stand saw, before anybody judged it. */
export interface Evidence {
  readonly options: StandOptions
  readonly written: readonly Written[]
  readonly arrivals: readonly Arrival[]
  readonly states: readonly EventState[]
  readonly answers: AnswerCounts
  readonly departures: readonly Departure[]
  readonly lostAcks: readonly LostAcknowledgement[]
  readonly troubles: readonly string[]
  readonly seconds: number
}

export interface Verdict {
  readonly proof: Proof
  /** Every promise that did not hold, in words. Empty is success. */
  readonly broken: readonly string[]
  /** What `--json` prints. */
  readonly figures: Record<string, unknown>
}

/** Judges a run. Pure: the same evidence gives the same verdict. */
export function judge(evidence: Evidence): Verdict {
  const { options, written, arrivals, states, answers, departures, lostAcks, troubles } = evidence
  const killed = departures.filter(({ how }) => how === 'killed')
  const proof = proveOrder(written, arrivals, explainDuplicates(arrivals, states, evidence))
  const departed = new Set(departures.map(({ relay }) => relay))
  const miscounted = attemptFaults(states, answers, (relay) => departed.has(relay))
  const recorded = new Set(written.map(({ eventId }) => eventId))
  const unknownRows = states.filter(({ eventId }) => !recorded.has(eventId)).length
  const wrongStates = states.filter(({ status }) => status !== 'published')
  const broken = [
    ...none(
      'lost',
      proof.lost.map(({ eventId, key, position }) => `${eventId} (${key}, ${position})`),
    ),
    ...none(
      'out of order',
      proof.outOfOrder.map(({ eventId, key, position }) => `${eventId} (${key}, ${position})`),
    ),
    ...none(
      'delivered again without a reason',
      proof.duplicates.filter(({ why }) => why === undefined).map(({ eventId }) => eventId),
    ),
    ...(options.kill + options.lostAcks === 0
      ? none(
          'delivered again without a fault',
          proof.duplicates.map(({ eventId }) => eventId),
        )
      : []),
    ...none('delivered and never committed', proof.phantoms),
    ...none(
      'not marked as published',
      wrongStates.map(({ eventId, status }) => `${eventId} (${status})`),
    ),
    ...none('with attempts that are not its counted answers', miscounted),
    ...none('troubles', troubles),
    ...differ('events written', written.length, options.events),
    ...differ('rows in the outbox that no booking has', unknownRows, 0),
    ...differ('acknowledgements lost on purpose', lostAcks.length, options.lostAcks),
    ...differ('relays killed', killed.length, options.kill),
  ]
  const attempts = {
    acknowledged: answers.acknowledged,
    rejected: answers.rejected,
    unavailable: answers.unavailable,
    unknown: answers.unknown,
    counted: states.reduce((sum, state) => sum + state.attempts, 0),
  }
  return {
    proof,
    broken,
    figures: {
      ok: broken.length === 0,
      lost: proof.lost.length,
      outOfOrder: proof.outOfOrder.length,
      duplicates: proof.duplicates.length,
      unexplained: proof.unexplained,
      phantoms: proof.phantoms.length,
      written: proof.written,
      published: proof.published,
      attempts,
      miscounted: miscounted.length,
      lostAcks: lostAcks.length,
      killed: killed.length,
      leasesLost: departures.length - killed.length,
      seconds: evidence.seconds,
      publisher: options.publisher,
      relays: options.relays,
      writers: options.writers,
      keys: options.keys,
      seed: options.seed,
      broken,
    },
  }
}

function none(what: string, found: readonly string[]): string[] {
  if (found.length === 0) return []
  const rest = found.length > 5 ? ` and ${found.length - 5} more` : ''
  return [`${found.length} ${what}: ${found.slice(0, 5).join(', ')}${rest}`]
}

function differ(what: string, found: number, wanted: number): string[] {
  return found === wanted ? [] : [`${what}: ${found} instead of ${wanted}`]
}
