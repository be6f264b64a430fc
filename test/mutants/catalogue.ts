import { failures } from './catalogue/failures.ts'
import { finding } from './catalogue/finding.ts'
import { lanes } from './catalogue/lanes.ts'
import { operating } from './catalogue/operating.ts'
import { settling } from './catalogue/settling.ts'
import { slots } from './catalogue/slots.ts'
import { writing } from './catalogue/writing.ts'
import type { Mutant } from './mutant.ts'

/** Every mutant, in the order in which an event meets the lines. */
export const catalogue: readonly Mutant[] = [
  ...writing,
  ...finding,
  ...lanes,
  ...slots,
  ...failures,
  ...settling,
  ...operating,
]
