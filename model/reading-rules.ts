import { at, type Rule } from './rule.ts'
import type { Defines } from './spin.ts'

const late: Defines = { EVENTS: 3, PLAIN_WRITERS: true }
const findsAll = at(
  'statements/find.test.ts',
  'misses no row of transactions that end in any order, and brings none that was rolled back',
)

/** What a find reads. */
export const readingRules: readonly Rule[] = [
  {
    name: 'xmax-is-included',
    rule: 'What became visible has the previous xmax as its transaction id, or a later one.',
    without: 'XMAX_EXCLUDED',
    within: { EVENTS: 1 },
    test: findsAll,
  },
  {
    name: 'list-is-looked-through',
    rule: 'What became visible may have an id of the previous list of transactions in progress.',
    without: 'LIST_IGNORED',
    within: { EVENTS: 2 },
    test: findsAll,
  },
  {
    name: 'lane-is-read-from-its-start',
    rule: 'A lane that turns up is read from its first row in line, not from the row that arrived.',
    without: 'READ_FROM_ARRIVAL',
    within: { EVENTS: 2, REJECTIONS: 1 },
    test: at('relay/rules/runs.test.ts', 'stays behind an event that waits for its retry, although only it arrived'),
  },
  {
    name: 'run-ends-before-a-blocked-row',
    rule: 'A run ends before the first row that is held or waits for its retry.',
    without: 'PASS_OVER_BLOCKED',
    within: { EVENTS: 2, REJECTIONS: 1 },
    test: at('statements/find.test.ts', 'ends a run before an event that waits for its retry'),
  },
  {
    name: 'own-arrivals-lower-the-low',
    rule: 'A find reads a lane that it goes on with from the smallest id that arrived with it.',
    without: 'OWN_ARRIVALS_IGNORED',
    within: late,
    test: at('relay/rules/late-commits.test.ts', 'is found by the very find that goes on with its lane'),
  },
  {
    name: 'hit-reads-from-the-start',
    rule: 'A find that reached its limit reads the lanes it goes on with from their start.',
    without: 'HIT_READS_FROM_LOW',
    within: { ...late, HITS: 1 },
    test: at('relay/rules/late-commits.test.ts', 'reads the lanes it goes on with from their start'),
  },
]
