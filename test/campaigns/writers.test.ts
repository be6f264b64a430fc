import { expect, test } from 'vitest'
import { holds, patience, play, promise } from './play.ts'

test.each(['kill-writers', 'hot-key', 'hot-key-serialized'])(promise, { timeout: patience }, holds)

test('a campaign notices publishers that lose, swap and repeat events', { timeout: patience }, async () => {
  const figures = await play('liars', 1)
  expect(figures.ok).toBe(false)
  expect(figures.lost).toBeGreaterThan(0)
  expect(figures.outOfOrder).toBeGreaterThan(0)
  expect(figures.unexplained).toBeGreaterThan(0)
})
