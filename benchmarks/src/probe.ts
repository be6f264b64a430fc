import type { Statement } from '@inorder/core'
import { firstLane, lastLane, slotCount } from '../../packages/core/src/contract/lane.ts'
import { dueStatement } from '../../packages/core/src/storage/due.ts'
import { type FindParameters, findStatement, type Snapshot } from '../../packages/core/src/storage/find.ts'
import { readSnapshot, snapshotStatement } from '../../packages/core/src/storage/snapshot.ts'
import { sweepStatement } from '../../packages/core/src/storage/sweep.ts'
import { everySlot, openStatements } from './hot-statements.ts'
import { percentile } from './statistics.ts'

/** One statement with the parameters of one situation. */
export interface Probe {
  readonly name: string
  readonly statement: 'find' | 'due' | 'sweep'
  /** Milliseconds at most; absent where nothing is promised. */
  readonly target?: number
  readonly find?: Partial<FindParameters> & { readonly previous: Snapshot }
}

/** A session with every statement prepared on it, as a relay has one. */
export interface Prober extends AsyncDisposable {
  snapshot(): Promise<Snapshot>
  /** Median of fifteen calls, in ms. Nothing that a call changes stays. */
  time(probe: Probe): Promise<number>
}

const repetitions = 15
/** A prepared statement gets its lasting plan with its sixth call. */
const callsUntilGeneric = 8

/** Opens a session and calls each statement until its plan is the one that the session keeps. */
export async function openProber(url: string): Promise<Prober> {
  const open = await openStatements(url)
  const { session, names } = open
  const [find, due, sweep] = [findStatement(names), dueStatement(names), sweepStatement(names)]
  const snapshot = async (): Promise<Snapshot> => readSnapshot((await session.run(snapshotStatement)).rows).snapshot

  function statementOf(probe: Probe, previous: Snapshot): Statement {
    if (probe.statement === 'due') return due()
    if (probe.statement === 'sweep') {
      return sweep({ from: firstLane(0), to: lastLane(slotCount - 1), lanes: 500, rowsOfALane: 100, topics: null, rows: 2000 })
    }
    const usual = { arrivals: 1000, slots: everySlot, topics: null, lanes: [], lows: [], rowsOfALane: 100, busy: [], rows: 2000 }
    return find({ ...usual, previous, ...probe.find })
  }

  async function call(probe: Probe, previous: Snapshot): Promise<number> {
    const statement = statementOf(probe, previous)
    if (probe.statement === 'due') await session.run({ text: 'begin', values: [] })
    const began = performance.now()
    await session.run(statement)
    const took = performance.now() - began
    if (probe.statement === 'due') await session.run({ text: 'rollback', values: [] })
    return took
  }

  const current = await snapshot()
  for (const statement of ['find', 'due', 'sweep'] as const) {
    for (let number = 0; number < callsUntilGeneric; number++) await call({ name: statement, statement }, current)
  }
  return {
    snapshot,
    async time(probe) {
      const previous = await snapshot()
      const times: number[] = []
      for (let repetition = 0; repetition < repetitions; repetition++) times.push(await call(probe, previous))
      return percentile(times, 0.5)
    },
    [Symbol.asyncDispose]: () => open[Symbol.asyncDispose](),
  }
}
