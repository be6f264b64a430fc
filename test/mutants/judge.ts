import { controlOf, type Mutant, type NamedTest } from './mutant.ts'
import { patternOf, type RanTest, type TestRun } from './run-tests.ts'

export interface Verdict {
  /** `broken` shows nothing either way: it did not load, or failed by something else than what a test expects. */
  readonly fate: 'killed' | 'survived' | 'broken'
  /** The test that failed, or what is wrong. */
  readonly by: string
}

// Vitest's report has stacks, not errors: that of a timeout is this, and those of a poll and of a promise have no class.
const timedOut = /^Error: STACK_TRACE_ERROR/
const expectation = /^(AssertionError\b|Error: expected |Error: promise resolved )/

/**
 * A mutant is killed when a test of its own name fails by an expectation or by its timeout, while the control passes. A
 * test that ends with another error says nothing: a statement that cannot be parsed would do that as well.
 */
export function judge(mutant: Mutant, run: TestRun): Verdict {
  const own = run.tests.filter((test) => isNamed(test, mutant.test))
  const failed = own.find(({ passed }) => !passed)
  if (own.length === 0) return { fate: 'broken', by: run.trouble ?? 'its test did not run' }
  if (failed === undefined) return { fate: 'survived', by: '' }
  const [error = ''] = failed.errors
  if (!failed.errors.some((each) => expectation.test(each) || timedOut.test(each)))
    return { fate: 'broken', by: firstLine(error) }
  const control = controlOf(mutant)
  const controls = control === undefined ? [] : run.tests.filter((test) => isNamed(test, control))
  if (control !== undefined && !(controls.length > 0 && controls.every(({ passed }) => passed)))
    return { fate: 'broken', by: `the control failed: ${firstLine(controls[0]?.errors[0] ?? 'it did not run')}` }
  return { fate: 'killed', by: timedOut.test(error) ? `${failed.name} (timed out)` : failed.name }
}

/** What kept the unchanged engine from passing, in words. */
export function faultsOf(tests: readonly NamedTest[], run: TestRun): string[] {
  const faults = run.trouble === undefined ? [] : [run.trouble]
  for (const test of tests) {
    const ran = run.tests.filter((each) => isNamed(each, test))
    if (ran.length === 0) faults.push(`${test.file}: ${test.title}: did not run`)
    for (const { passed, name, errors } of ran)
      if (!passed) faults.push(`${test.file}: ${name}: ${firstLine(errors[0] ?? '')}`)
  }
  return [...new Set(faults)]
}

function isNamed({ file, name }: RanTest, test: NamedTest): boolean {
  return file === test.file && new RegExp(patternOf(test.title)).test(name)
}

function firstLine(text: string): string {
  return text.split('\n')[0] ?? ''
}
