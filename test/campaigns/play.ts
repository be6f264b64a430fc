import { expect } from 'vitest'
import { lastJson, startProgram } from '../scenarios/run-program.ts'
import type { Figures } from './figures.ts'

/** Long enough for a few faults; `npm run campaign` is for more. */
const minutes = '0.1'
/** Most of it is the start of processes, which a loaded machine takes its time for. */
export const patience = 10 * 60_000

/** Plays a short version of a campaign, which ends with this exit code. */
export async function play(name: string, exit: 0 | 1): Promise<Figures> {
  const end = await startProgram('test/campaigns/campaign.ts', [name, '--minutes', minutes, '--seed', '1', '--json'])
    .end
  expect(end.how, `${end.stdout}\n${end.stderr}`).toBe(exit)
  return lastJson(end) as unknown as Figures
}

export const promise = 'nothing is lost, out of order or delivered again without a reason: %s'

/** Plays a campaign in which every invariant has to hold although something was broken. */
export async function holds(name: string): Promise<void> {
  const figures = await play(name, 0)
  expect(figures).toMatchObject({ ok: true, lost: 0, outOfOrder: 0, unexplained: 0, phantoms: 0, broken: [] })
  expect(figures.pairs).toBeGreaterThan(500)
  expect(Object.keys(figures.faults)).not.toEqual([])
}
