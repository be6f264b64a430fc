import { createRequire } from 'node:module'
import { available } from '@inorder/harness'
import { describe, expect, test } from 'vitest'
import { startProgram } from './run-program.ts'

const program = 'examples/redis-streams/src/main.ts'

describe.skipIf(!available('redis', { own: true }))('the Redis Streams example', () => {
  test('processes every order once and in order, although its consumer crashes', { timeout: 300_000 }, async () => {
    const end = await startProgram(program, []).end
    expect(end, end.stderr).toMatchObject({ how: 0 })
    expect(end.stdout.match(/^order-\d+ +4 +4 +yes$/gm)).toHaveLength(10)
    expect(end.stdout).toMatch(/duplicates dropped by the inbox: [1-9]/)
  })

  test('carries what GitHub really sends', { timeout: 300_000 }, async () => {
    const file = createRequire(import.meta.url).resolve('@octokit/webhooks-examples')
    const end = await startProgram(program, ['--events', file]).end
    expect(end, end.stderr).toMatchObject({ how: 0 })
    expect(end.stdout).toMatch(/^Codertocat\/Hello-World +230 +230 +yes$/m)
  })
})
