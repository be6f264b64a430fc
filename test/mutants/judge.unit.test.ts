import { describe, expect, it } from 'vitest'
import { faultsOf, judge } from './judge.ts'
import { misplaced, type Mutant, mutate, usualControl } from './mutant.ts'
import { patternOf, type RanTest, type TestRun } from './run-tests.ts'

const mutant: Mutant = {
  name: 'wrong-sign',
  promise: 'P3',
  breaks: 'Everything comes out the other way round.',
  file: 'src/order.ts',
  text: 'a < b',
  becomes: 'a > b',
  test: { file: 'test/order.test.ts', title: 'keeps order' },
}
const assertion = "AssertionError: expected [ 'b', 'a' ] to deeply equal [ 'a', 'b' ]\n    at order.test.ts:1"

function ran(file: string, name: string, ...errors: string[]): RanTest {
  return { file, name, passed: errors.length === 0, errors }
}
const control = ran(usualControl.file, `order ${usualControl.title}`)
const run = (...tests: RanTest[]): TestRun => ({ tests, trouble: undefined })
const own = (...errors: string[]): RanTest => ran(mutant.test.file, 'a lane keeps order', ...errors)

describe('a mutant is killed', () => {
  it.each([
    ['an expectation', assertion, 'a lane keeps order'],
    ['a promise that resolved', 'Error: promise resolved "[ 1 ]" instead of rejecting', 'a lane keeps order'],
    ['a poll', 'Error: expected +0 to be 1 // Object.is equality', 'a lane keeps order'],
    ['its timeout', 'Error: STACK_TRACE_ERROR\n    at task', 'a lane keeps order (timed out)'],
  ])('when its test fails by %s and the control passes', (_, error, by) => {
    expect(judge(mutant, run(own(error), control))).toEqual({ fate: 'killed', by })
  })

  it('without a control where no server is needed', () => {
    const test = { ...mutant.test, file: 'test/order.unit.test.ts' }
    expect(judge({ ...mutant, test }, run(ran(test.file, 'keeps order', assertion))).fate).toBe('killed')
  })
})

describe('a mutant is not killed', () => {
  it('when its test passes', () => {
    expect(judge(mutant, run(own(), control)).fate).toBe('survived')
  })

  it.each([
    ['by a statement that cannot be parsed', run(own('error: syntax error at or near ")"\n    at pg'), control)],
    ['by a name that is not there', run(own('ReferenceError: lane is not defined'), control)],
    ['by a control that fails too', run(own(assertion), { ...control, passed: false, errors: [assertion] })],
    ['by a control that did not run', run(own(assertion))],
    ['by another test of its file', run(ran(mutant.test.file, 'a lane keeps quiet', assertion), control)],
    ['by a file that does not load', { tests: [], trouble: 'SyntaxError: Unexpected token' }],
  ])('%s', (_, result) => {
    expect(judge(mutant, result).fate).toBe('broken')
  })
})

describe('the engine without mutants', () => {
  const tests = [mutant.test, usualControl]

  it('passes when every named test did', () => {
    expect(faultsOf(tests, run(own(), control))).toEqual([])
  })

  it('does not when one failed, did not run or did not load', () => {
    expect(faultsOf(tests, run(own(assertion), control))).toHaveLength(1)
    expect(faultsOf(tests, run(control))).toEqual(['test/order.test.ts: keeps order: did not run'])
    expect(faultsOf(tests, { ...run(own(), control), trouble: 'gone' })).toEqual(['gone'])
  })
})

describe('the text of a mutant', () => {
  it('stands in its file once, or the mutant is refused', () => {
    expect(misplaced(mutant, 'return a < b')).toBeUndefined()
    expect(misplaced(mutant, 'return a <= b')).toBe('its text stands 0 times in src/order.ts')
    expect(misplaced(mutant, 'return a < b || a < b')).toBe('its text stands 2 times in src/order.ts')
    expect(misplaced({ ...mutant, becomes: 'a < b' }, 'return a < b')).toBe('it changes nothing')
  })

  it('is replaced as it is, whatever it contains', () => {
    expect(mutate({ ...mutant, becomes: "$& $1 $'" }, 'return a < b')).toBe("return $& $1 $'")
  })
})

it('a title matches itself, and anything where a value of a table stands', () => {
  const pattern = new RegExp(patternOf('is refused (%s), with [both] $1'))
  expect(pattern.test('an event is refused (no key), with [both] $1')).toBe(true)
  expect(pattern.test('an event is refused no key, with b $1')).toBe(false)
})
