import { available } from '@inorder/harness'
import { describe, expect, it, test } from 'vitest'
import { hasTest } from '../../model/rule.ts'
import { rules } from '../../model/rules.ts'
import { lastJson, startProgram } from './run-program.ts'

const minute = 60_000

test('every rule of the formal model names a test that exists', () => {
  expect(rules.length).toBeGreaterThan(20)
  expect(rules.filter((rule) => !hasTest(rule)).map(({ name }) => name)).toEqual([])
})

describe.skipIf(!available('spin'))('the formal model', () => {
  it(
    'keeps its promises, and breaks one without any of its rules, in the way that is kept',
    async () => {
      const end = await startProgram('model/model.ts', ['--quick', '--json']).end
      expect(end, end.stdout + end.stderr).toMatchObject({ how: 0 })
      expect(lastJson(end)).toMatchObject({ ok: true })
      expect(lastJson(end).rules).toHaveLength(rules.length)
    },
    10 * minute,
  )
})
