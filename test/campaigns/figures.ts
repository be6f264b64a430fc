import type { Evidence } from './evidence.ts'
import type { Verdict } from './judge.ts'

/** What one run came to, in numbers: what `--json` prints and `--save` keeps. */
export interface Figures {
  readonly campaign: string
  readonly seed: number
  readonly seconds: number
  readonly ok: boolean
  readonly transactions: number
  /** Commits whose outcome no writer was told. */
  readonly unknownCommits: number
  readonly events: number
  readonly deliveries: number
  readonly faults: Readonly<Record<string, number>>
  readonly lost: number
  readonly outOfOrder: number
  readonly pairs: number
  readonly explained: Readonly<Record<string, number>>
  readonly duplicates: number
  readonly unexplained: number
  readonly phantoms: number
  /** Acknowledged transactions that a failover forgot. */
  readonly forgotten: number
  readonly attempts: {
    readonly rejected: number
    readonly unavailable: number
    readonly unknown: number
    readonly counted: number
  }
  readonly leasesLost: number
  readonly writerErrors: Readonly<Record<string, number>>
  /** How long the last event took to be out after the last writer had stopped, in ms. */
  readonly quietMs: number
  readonly broken: readonly string[]
}

export function readFigures(evidence: Evidence, verdict: Verdict): Figures {
  const { answers, states, transactions, departures } = evidence
  const reasons = verdict.copies.flatMap(({ why }) => (why === undefined ? [] : [why.replace(/^relay-\d+ /, '')]))
  return {
    campaign: evidence.campaign,
    seed: evidence.seed,
    seconds: Math.round(evidence.seconds * 10) / 10,
    ok: verdict.broken.length === 0,
    transactions: transactions.filter(({ outcome }) => outcome === 'committed').length,
    unknownCommits: transactions.filter(({ outcome }) => outcome === 'unknown').length,
    events: verdict.events,
    deliveries: verdict.deliveries,
    faults: countEach(evidence.faults.map(({ kind }) => kind)),
    lost: verdict.lost.length,
    outOfOrder: verdict.overtakings.length,
    pairs: verdict.pairs,
    explained: countEach(reasons),
    duplicates: verdict.copies.length,
    unexplained: verdict.copies.length - reasons.length,
    phantoms: verdict.phantoms.length,
    forgotten: verdict.forgotten,
    attempts: {
      rejected: answers.rejected,
      unavailable: answers.unavailable,
      unknown: answers.unknown,
      counted: states.reduce((sum, { attempts }) => sum + attempts, 0),
    },
    leasesLost: departures.filter(({ how }) => how === 'lost its lease').length,
    writerErrors: evidence.writerErrors,
    quietMs: Math.round(evidence.quietMs),
    broken: verdict.broken,
  }
}

function countEach(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}
