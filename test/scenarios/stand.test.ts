import { available } from '@inorder/harness'
import { describe, expect, test } from 'vitest'
import { lastJson, startProgram } from './run-program.ts'

// Processes of their own, started one after the other: 2 relays and 1 writer are enough to disagree.
const small = ['--events', '90', '--keys', '6', '--relays', '2', '--writers', '2', '--json']
const minute = 60_000

async function stand(...args: string[]): Promise<Record<string, unknown>> {
  const end = await startProgram('test/stand/stand.ts', [...small, ...args]).end
  expect(end, end.stderr).toMatchObject({ how: 0 })
  return lastJson(end)
}

const clean = { ok: true, lost: 0, outOfOrder: 0, unexplained: 0, phantoms: 0, written: 90, published: 90, broken: [] }

test('relay processes and an in-process broker that fails keep every key in order', {
  timeout: 5 * minute,
}, async () => {
  const figures = await stand('--seed', '1', '--rejected', '0.2', '--unavailable', '0.05')
  expect(figures).toMatchObject({ ...clean, duplicates: 0, lostAcks: 0, killed: 0 })
  const attempts = figures.attempts as Record<string, number>
  expect(attempts.acknowledged).toBe(90)
  expect(attempts.rejected).toBeGreaterThan(0)
  expect(attempts.counted).toBe(attempts.rejected)
})

test('a killed relay and lost acknowledgements only make duplicates that they explain', {
  timeout: 5 * minute,
}, async () => {
  const figures = await stand('--kill', '--lost-acks', '3')
  expect(figures).toMatchObject({ ...clean, lostAcks: 3, killed: 1 })
  // Each of the four was a run of at least one event that the broker had and the relay did not know of.
  expect(figures.duplicates).toBeGreaterThanOrEqual(4)
})

describe.skipIf(!available('redis', { own: true }))('with Redis', () => {
  test('relay processes keep every key in order on real streams', { timeout: 5 * minute }, async () => {
    expect(await stand('--publisher', 'redis')).toMatchObject({ ...clean, duplicates: 0, publisher: 'redis' })
  })

  test('a killed relay and lost acknowledgements only make duplicates that they explain', {
    timeout: 5 * minute,
  }, async () => {
    const figures = await stand('--publisher', 'redis', '--kill', '--lost-acks', '3')
    expect(figures).toMatchObject({ ...clean, lostAcks: 3, killed: 1 })
    expect(figures.duplicates).toBeGreaterThanOrEqual(4)
  })
})

test('a wrong option is refused with exit code 2', { timeout: minute }, async () => {
  const end = await startProgram('test/stand/stand.ts', ['--events', '0']).end
  expect(end).toMatchObject({ how: 2, stdout: '' })
  expect(end.stderr).toContain('--events')
})
