import { type FindChanges, openHotStatements, type Snapshot } from './hot-statements.ts'
import { percentile } from './statistics.ts'

/** One statement with the parameters of one situation. */
export interface Probe {
  readonly name: string
  readonly statement: 'find' | 'due' | 'sweep' | 'snapshot'
  /** Milliseconds at most; absent where nothing is promised. */
  readonly target?: number
  /** The slot that is swept; absent is all of them, as if they were one. */
  readonly slot?: number
  readonly find?: FindChanges
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
  const hot = await openHotStatements(url)

  async function run({ statement, slot, find }: Probe, previous: Snapshot): Promise<unknown> {
    if (statement === 'snapshot') return hot.snapshot()
    if (statement === 'due') return hot.due()
    return statement === 'sweep' ? hot.sweep({ slot }) : hot.find({ previous, ...find })
  }

  async function call(probe: Probe, previous: Snapshot): Promise<number> {
    if (probe.statement === 'due') await hot.transaction('begin')
    const began = performance.now()
    await run(probe, previous)
    const took = performance.now() - began
    if (probe.statement === 'due') await hot.transaction('rollback')
    return took
  }

  const current = await hot.snapshot()
  for (const statement of ['find', 'due', 'sweep'] as const) {
    for (let number = 0; number < callsUntilGeneric; number++) await call({ name: statement, statement }, current)
  }
  return {
    snapshot: () => hot.snapshot(),
    async time(probe) {
      const previous = await hot.snapshot()
      const times: number[] = []
      for (let repetition = 0; repetition < repetitions; repetition++) times.push(await call(probe, previous))
      return percentile(times, 0.5)
    },
    [Symbol.asyncDispose]: () => hot[Symbol.asyncDispose](),
  }
}
