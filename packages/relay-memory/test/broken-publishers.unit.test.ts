import { AssertionError } from 'node:assert'
import { breakSubject, brokenPublishers, conformanceCases } from '@inorder/conformance'
import { describe, expect, test } from 'vitest'
import { memorySubject } from './subject.ts'

describe('the conformance suite notices a publisher that', () => {
  // Each has a broker of its own, and most of its time is waiting.
  test.concurrent.each(brokenPublishers)('$name', { timeout: 30_000 }, async (broken) => {
    const failed: string[] = []
    for (const { name, run } of conformanceCases(breakSubject(memorySubject(), broken))) {
      const error = await run().then(
        () => undefined,
        (reason: unknown) => reason,
      )
      if (error === undefined) continue
      expect(error, `${name} must fail with an assertion`).toBeInstanceOf(AssertionError)
      expect((error as AssertionError).message).toMatch(/expected .* saw /is)
      failed.push(name)
    }
    expect(failed).toEqual(broken.breaks)
  })
})

test('every case has a publisher that fails it', () => {
  const names = conformanceCases(memorySubject()).map(({ name }) => name)
  const broken = new Set(brokenPublishers.flatMap(({ breaks }) => breaks))
  expect(names.filter((name) => !broken.has(name))).toEqual([])
  expect([...broken].filter((name) => !names.includes(name))).toEqual([])
})
