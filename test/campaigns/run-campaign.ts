import { setTimeout as delay } from 'node:timers/promises'
import { readEventStates } from '../stand/outbox-state.ts'
import { readBookings, readRevived } from './business-rows.ts'
import type { Campaign } from './campaign-plan.ts'
import type { Evidence } from './evidence.ts'
import { none } from './judge.ts'
import { findUnrest, untilPublished } from './rest.ts'
import { defaultStage } from './stage-options.ts'
import { openStage, type Stage } from './stage.ts'

export interface RunOptions {
  /** How long there is trouble. */
  readonly ms: number
  readonly seed: number
  readonly say: (line: string) => void
  /** Ends the campaign without a result. */
  readonly signal: AbortSignal
}

/** How long nothing may go out after the last fault while something waits. A lease, breakers and backoffs end long before. */
const standstillMs = 60_000

/** How long a campaign may take to mend what it broke: a failover needs some hundred transactions before and after. */
const mendTimeoutMs = 5 * 60_000

/** Runs one campaign from the first server to the last reading, and leaves nothing behind. */
export async function runCampaign(campaign: Campaign, { ms, seed, say, signal }: RunOptions): Promise<Evidence> {
  say(`${campaign.name}: ${campaign.about}. Seed ${seed}`)
  await using stage = await openStage({ ...defaultStage, ...campaign.stage }, seed, say)
  signal.throwIfAborted()
  const { relays, writers, options } = stage
  await Promise.all([
    ...Array.from({ length: options.relays }, () => relays.start()),
    ...Array.from({ length: options.writers }, () => writers.start()),
  ])
  signal.throwIfAborted()
  say(`${options.relays} relays and ${options.writers} writer processes are at work`)
  const began = performance.now()
  const talking = new AbortController()
  const progress = reportProgress(stage, talking.signal)
  const firstHeaps = new Map([...(await relays.look())].map(([name, { heap }]) => [name, heap]))

  const trouble = new AbortController()
  const timer = setTimeout(() => trouble.abort(), ms)
  const stopTrouble = (): void => trouble.abort()
  signal.addEventListener('abort', stopTrouble, { once: true })
  try {
    await inTime(campaign.disturb(stage, trouble.signal), ms + mendTimeoutMs, signal)
    // Whoever was disturbed also works for a moment undisturbed.
    await delay(500, undefined, { signal })
    await writers.stop()
    const quietAt = performance.now()
    await untilPublished(stage.db, standstillMs, signal)
    const quietMs = performance.now() - quietAt
    const unrest = await findUnrest(stage, firstHeaps)
    await Promise.all(relays.names.map((name) => relays.stop(name)))
    return await collect(stage, campaign, { seconds: (performance.now() - began) / 1000, seed, quietMs, unrest })
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stopTrouble)
    talking.abort()
    await progress
  }
}

/** Waits for the work, unless it takes too long or the campaign is ended. */
async function inTime(work: Promise<void>, ms: number, signal: AbortSignal): Promise<void> {
  const over = new AbortController()
  const stop = (): void => over.abort()
  signal.addEventListener('abort', stop, { once: true })
  const late = delay(ms, true, { signal: over.signal }).catch(() => false)
  const tooLate = await Promise.race([work, late])
  signal.removeEventListener('abort', stop)
  over.abort()
  signal.throwIfAborted()
  if (tooLate === true) throw new Error(`The trouble did not end within ${ms} ms.`)
}

async function collect(
  { db, relays, writers, broker, faults, failovers, troubles }: Stage,
  { name }: Campaign,
  measured: Pick<Evidence, 'seconds' | 'seed' | 'quietMs' | 'unrest'>,
): Promise<Evidence> {
  return {
    campaign: name,
    ...measured,
    transactions: [...writers.ledger.transactions.values()],
    bookings: await readBookings(db),
    arrivals: await broker.read(),
    states: await readEventStates(db),
    answers: relays.answers,
    faults: faults.all,
    departures: relays.departures,
    stopped: relays.stopped,
    failovers,
    writerErrors: writers.ledger.errors,
    troubles: [
      ...relays.troubles,
      ...writers.troubles,
      ...troubles,
      ...none('published rows that changed their status again', await readRevived(db)),
    ],
  }
}

async function reportProgress({ relays, writers, faults, say }: Stage, until: AbortSignal): Promise<void> {
  while (await delay(1000, true, { signal: until }).catch(() => false)) {
    const broken = Object.entries(faults.counts()).map(([kind, count]) => `${kind} ${count}`)
    say(`committed ${writers.ledger.committed}  acknowledged ${relays.acknowledged}  ${broken.join('  ')}`)
  }
}
