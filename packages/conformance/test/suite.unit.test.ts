import type { Publisher } from '@inorder/core'
import { expect, test } from 'vitest'
import { type ConformanceSubject, conformanceCases } from '../src/index.ts'

/** A subject that is only looked at: none of its cases is run. */
function subject(capabilities: Partial<Publisher['capabilities']> = {}): ConformanceSubject {
  const publisher: Publisher = {
    name: 'looked-at',
    capabilities: {
      maxEventBytes: 1_000_000,
      maxRun: 100,
      order: 'key',
      dedupe: { by: 'none', windowMs: 0 },
      fence: 'same-relay',
      tombstones: true,
      headers: true,
      confirms: 'memory',
      ...capabilities,
    },
    connect: () => Promise.resolve(),
    destination: ({ topic }) => topic,
    publish: (run) => Promise.resolve({ acknowledged: run.length }),
    check: () => Promise.resolve({ ok: true, findings: [] }),
    close: () => Promise.resolve(),
  }
  return { createPublisher: () => publisher, read: () => Promise.resolve([]) }
}

test('a case whose hook is missing is listed with the reason, and refuses to run', async () => {
  const withoutHooks = conformanceCases(subject())
  const hooked = withoutHooks.filter(({ needs }) => needs.length > 0)
  expect(hooked.length).toBeGreaterThan(5)
  for (const { needs, skipped, run } of hooked) {
    for (const hook of needs) expect(skipped).toContain(hook)
    await expect(run()).rejects.toThrow(skipped)
  }
  const stalled = conformanceCases({ ...subject(), stall: () => () => undefined })
  expect(stalled).toHaveLength(withoutHooks.length)
  for (const { needs, skipped } of stalled) if (needs.includes('stall')) expect(skipped).toBeUndefined()
})

test('a publisher is held to what it says that it can', () => {
  const skippedWith = (capabilities: Partial<Publisher['capabilities']>): string[] =>
    conformanceCases({ ...subject(capabilities), stall: () => () => undefined, poison: (event) => event }).flatMap(
      ({ skipped }) => skipped ?? [],
    )
  const usual = skippedWith({})
  const reasons = (capabilities: Partial<Publisher['capabilities']>): string[] =>
    skippedWith(capabilities).filter((reason) => !usual.includes(reason))
  expect(reasons({ fence: 'none' })).toEqual(['its fence is none'])
  expect(reasons({ tombstones: false })).toEqual(['the broker has no tombstones'])
  expect(reasons({ headers: false })).toEqual(['the broker has no headers'])
  expect(new Set(reasons({ maxRun: 1 }))).toEqual(new Set(['maxRun is 1']))
})

test('names are unique, because a report is read by name', () => {
  const names = conformanceCases(subject()).map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
})

test('a failing case says what was expected and what was seen', async () => {
  const order = conformanceCases(subject()).find(({ name }) => name.includes('longest run'))
  await expect(order?.run()).rejects.toThrow(/expected 100 and saw 0; from position 0 on expected \[.*\], saw \[\]/)
})
