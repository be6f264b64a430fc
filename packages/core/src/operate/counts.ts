import { numberOption, optionProblems, refuseProblems } from '../contract/option-table.ts'
import {
  type CountedEvents,
  type CountedState,
  countEventsStatement,
  maxCounted,
  readCounted,
} from '../storage/count-events.ts'
import { estimatePublishedStatement, readEstimated } from '../storage/estimate-published.ts'
import { type OperatorParts, withSession } from './session.ts'

export interface CountsOptions {
  /** Rows that are looked at in each state. Default 10,000, minimum 1, at most 100,000. It bounds the time this takes. */
  readonly limit?: number
}

/** A number of events; with `more` it is at least that many, because the limit was reached. */
export interface Count {
  readonly count: number
  readonly more: boolean
}

export interface StateCounts {
  /** In line, and nothing in their key keeps them back. */
  readonly ready: Count
  /** Tried, and waiting for their retry. */
  readonly waiting: Count
  /** Behind one that waits or is held, or their topic or key is held. */
  readonly blocked: Count
  /** Ready, waiting and blocked ones together. */
  readonly pending: Count
  readonly scheduled: Count
  readonly held: Count
  readonly failed: Count
  /** About how many there are: exact in a small table, else from a sample of it. */
  readonly published: { readonly about: number }
}

export interface Counts extends StateCounts {
  /** How long the pending event that came in line first has been there, in ms. Null when there is none. */
  readonly oldestPendingAgeMs: number | null
  /** Topics that have events, by name. With `more` above, some may be missing. */
  readonly topics: readonly (StateCounts & { readonly topic: string })[]
}

const defaultLimit = 10_000

export async function counts(parts: OperatorParts, options: CountsOptions): Promise<Counts> {
  refuseProblems('counts', optionProblems(options, { limit: numberOption({ min: 1, max: maxCounted }) }))
  const { limit = defaultLimit } = options
  return withSession(parts, async (session) => {
    const counted = readCounted((await session.run(countEventsStatement(parts.names)(limit))).rows)
    const published = readEstimated((await session.run(estimatePublishedStatement(parts.names))).rows)
    return summarize(counted, published)
  })
}

/** Puts the rows of both statements together. Pure. */
function summarize(
  { rows, more, oldestMs }: CountedEvents,
  published: readonly { readonly topic: string; readonly count: number }[],
): Counts {
  const statesOf = (topic: string | undefined): StateCounts => {
    const mine = rows.filter((row) => topic === undefined || row.topic === topic)
    const sum = (state: CountedState): number =>
      mine.reduce((total, row) => total + (row.state === state ? row.count : 0), 0)
    const [ready, waiting, blocked] = [sum('ready'), sum('waiting'), sum('blocked')]
    const inLine = (count: number): Count => ({ count, more: more.inLine })
    return {
      ready: inLine(ready),
      waiting: inLine(waiting),
      blocked: inLine(blocked),
      pending: inLine(ready + waiting + blocked),
      scheduled: { count: sum('scheduled'), more: more.waiting },
      held: { count: sum('held'), more: more.failed },
      failed: { count: sum('failed'), more: more.failed },
      published: {
        about: published.reduce(
          (total, each) => total + (topic === undefined || each.topic === topic ? each.count : 0),
          0,
        ),
      },
    }
  }
  const topics = [...new Set([...rows, ...published].map(({ topic }) => topic))].sort()
  return {
    ...statesOf(undefined),
    oldestPendingAgeMs: oldestMs,
    topics: topics.map((topic) => ({ topic, ...statesOf(topic) })),
  }
}
