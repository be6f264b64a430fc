import { describe, expect, it } from 'vitest'
import { OutboxError, type Problem } from '../../src/contract/errors.ts'
import {
  checkOptions,
  choiceOption,
  flagOption,
  functionOption,
  listOption,
  numberOption,
  objectOption,
  type OptionRule,
  optionProblems,
  required,
  textOption,
} from '../../src/contract/option-table.ts'

describe('an option takes', () => {
  const whole = numberOption({ min: 1, max: 10 })
  const endless = numberOption({ min: 1, max: 10, infinite: true })
  const part = numberOption({ min: 0, integer: false })
  const name = textOption({ maxBytes: 4 })
  const names = listOption(name)

  it.each<[string, OptionRule, readonly unknown[], readonly unknown[]]>([
    ['a whole number within its limits', whole, [1, 10], [0, 11, 1.5, Number.NaN, Infinity, -Infinity, '1', 1n, null]],
    ['Infinity only where it means something', endless, [1, Infinity], [-Infinity, 11, Number.NaN]],
    ['a fraction only where it means something', part, [0, 0.5, Number.MAX_SAFE_INTEGER], [-0.5, Infinity, Number.NaN]],
    ['one of its choices', choiceOption('a', 'b'), ['a', 'b'], ['c', '', 1, ['a'], null]],
    ['true or false', flagOption(), [true, false], [0, 'true', null]],
    ['a function', functionOption(), [() => 1], [{}, 'f', null]],
    ['text up to a number of bytes', name, ['a', 'abcd', '😀'], ['', 'abcde', '😀a', 'a\0', '\ud83d', 5, null]],
    ['a list of good entries', names, [['a'], ['a', 'b']], [[], ['a', ''], ['a', 1], 'a', null, { length: 1, 0: 'a' }]],
    [
      'an object with its members',
      objectOption('query'),
      [
        { query: 1 },
        new (class {
          query(): void {}
        })(),
      ],
      [{}, null, 'x', () => 1],
    ],
  ])('%s, and nothing else', (_, { check }, good, bad) => {
    for (const value of good) expect([value, check(value)]).toEqual([value, undefined])
    for (const value of bad) expect([value, check(value)]).toEqual([value, expect.any(String)])
  })
})

describe('a set of options', () => {
  const table = { size: numberOption({ min: 1 }), name: required(textOption({ maxBytes: 9 })) }

  it('without a fault is taken, undefined being as good as absent', () => {
    expect(optionProblems({ name: 'a', size: undefined }, table)).toEqual([])
    expect(() => checkOptions('x', { name: 'a', size: 2 }, table)).not.toThrow()
  })

  it('is refused with every fault in one error, each with its name and value', () => {
    const error = caught(() => checkOptions('createThing', { size: 0, sise: 3, toString: 1 }, table))
    expect(error).toBeInstanceOf(OutboxError)
    expect(error).toMatchObject({ code: 'OPTIONS_INVALID', message: expect.stringMatching(/^createThing: /) as string })
    const problems = (error as OutboxError).problems
    expect(problems.map(({ path }: Problem) => path)).toEqual(['size', 'sise', 'toString', 'name'])
    expect(problems[0]?.message).toContain('got 0')
    expect(problems[1]?.message).toContain('the options are size, name')
    expect(problems[3]?.message).toBe('is required')
  })

  it('does not take the members of every object for options', () => {
    const inherited = JSON.parse('{"__proto__": 1, "constructor": 2}') as object
    expect(optionProblems({ ...inherited, name: 'a' }, table).map(({ path }) => path)).toContain('constructor')
  })

  it('that is no object is refused as one', () => {
    for (const nothing of [undefined, null, 'options']) {
      expect(caught(() => checkOptions('createThing', nothing as never, table))).toMatchObject({
        code: 'OPTIONS_INVALID',
      })
    }
  })

  it('shows a value so that the line stays short and no content is spilled', () => {
    const shown = (size: unknown): string => optionProblems({ name: 'a', size }, table)[0]?.message ?? ''
    expect(shown('x'.repeat(500)).length).toBeLessThan(160)
    expect(shown({ password: 'secret' })).toMatch(/got an object$/)
    expect(shown(['secret'])).toMatch(/got a list$/)
    expect(shown(() => 'secret')).toMatch(/got a function$/)
    expect(shown(Symbol('x'))).toMatch(/got Symbol\(x\)$/)
    expect(shown(1n)).toMatch(/got 1$/)
    expect(shown(null)).toMatch(/got null$/)
  })
})

function caught(act: () => void): unknown {
  try {
    act()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}
