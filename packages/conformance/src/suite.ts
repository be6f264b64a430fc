import type { CaseDefinition, ConformanceCase } from './case.ts'
import { bindCase } from './case.ts'
import { contentCases } from './cases/content.ts'
import { descriptionCases } from './cases/description.ts'
import { doubtCases } from './cases/doubt.ts'
import { endingCases } from './cases/ending.ts'
import { orderCases } from './cases/order.ts'
import { prefixCases } from './cases/prefix.ts'
import type { ConformanceSubject } from './subject.ts'

const definitions: readonly CaseDefinition[] = [
  ...descriptionCases,
  ...orderCases,
  ...prefixCases,
  ...contentCases,
  ...doubtCases,
  ...endingCases,
]

/**
 * Every case of the suite for one subject, also those that it cannot run: they say so in `skipped`. Cases use topics
 * of their own, but a hook breaks the broker for all, so run them one after another.
 *
 * @example
 * for (const { name, skipped, run } of conformanceCases(subject)) {
 *   test.skipIf(skipped !== undefined)(skipped === undefined ? name : `${name} (skipped: ${skipped})`, run)
 * }
 */
export function conformanceCases(subject: ConformanceSubject): ConformanceCase[] {
  const { capabilities } = subject.createPublisher()
  return definitions.map((definition) => bindCase(definition, subject, capabilities))
}
