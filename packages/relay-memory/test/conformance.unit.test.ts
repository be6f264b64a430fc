import { conformanceCases } from '@inorder/conformance'
import { describe, expect, test } from 'vitest'
import { memorySubject } from './subject.ts'

describe('the in-process broker keeps the publish contract', () => {
  const cases = conformanceCases(memorySubject())

  for (const { name, run } of cases) test(name, run)

  test('no case is skipped', () => {
    expect(cases.flatMap(({ name, skipped }) => (skipped === undefined ? [] : [`${name}: ${skipped}`]))).toEqual([])
  })
})
