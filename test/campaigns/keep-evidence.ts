import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Evidence } from './evidence.ts'
import type { Verdict } from './judge.ts'

/** Writes both ledgers and everything else that was judged into a new folder, and returns its path. */
export async function keepEvidence(evidence: Evidence, verdict: Verdict): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `inorder-campaign-${evidence.campaign}-${evidence.seed}-`))
  const { transactions, arrivals, states, faults, departures, bookings, stopped, answers, ...rest } = evidence
  const files: Record<string, unknown> = {
    writers: transactions,
    broker: arrivals,
    rows: states,
    bookings,
    answers: answers.all(),
    faults: { faults, departures, stopped },
    verdict: { ...rest, ...verdict },
  }
  for (const [name, content] of Object.entries(files)) {
    await writeFile(join(folder, `${name}.json`), JSON.stringify(content, readable, 1))
  }
  return folder
}

function readable(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Map || value instanceof Set) return [...(value as Iterable<unknown>)]
  return value
}
