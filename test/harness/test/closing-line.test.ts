import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../../', import.meta.url))
// Inside the checkout, so that the runs find vitest; its name keeps it out of every other run.
mkdirSync(join(root, 'node_modules/.cache'), { recursive: true })
const folder = mkdtempSync(join(root, 'node_modules/.cache/closing-line-'))

afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
})

async function runVitest(
  name: string,
  files: Record<string, string>,
  settings = '',
): Promise<{ last: string; code: number }> {
  const place = join(folder, name)
  const reporter = join(root, 'test/harness/src/closing-line.ts')
  const config = `import { closingLine } from ${JSON.stringify(reporter)}
    export default { test: { reporters: ['default', closingLine()], include: ['*.case.ts'], ${settings} } }`
  for (const [path, content] of Object.entries({ ...files, 'vitest.config.ts': config })) {
    mkdirSync(dirname(join(place, path)), { recursive: true })
    writeFileSync(join(place, path), content)
  }
  const { INORDER_TALLY_FD: _, ...env } = process.env
  const run = spawn(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--root', place], {
    env: { ...env, VITEST: undefined, VITEST_POOL_ID: undefined, VITEST_WORKER_ID: undefined },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [output, code] = await Promise.all([
    text(run.stdout),
    new Promise<number>((resolve) =>
      run.once('exit', (exit) => {
        resolve(exit ?? -1)
      }),
    ),
  ])
  return { last: output.trimEnd().split('\n').at(-1) ?? '', code }
}

const lines = (...all: string[]): string =>
  [`import { test, expect, describe, beforeAll } from 'vitest'`, ...all].join('\n')
const pass = "test('passes', () => undefined)"

test('a good run ends with its counts and exit code 0', async () => {
  const run = await runVitest('good', { 'a.case.ts': lines(pass, "test.skipIf(true)('skipped', () => undefined)") })
  expect(run).toEqual({ last: 'Tests: 1 passed, 0 failed, 1 skipped', code: 0 })
})

test('a failed test is counted', async () => {
  const run = await runVitest('bad', { 'a.case.ts': lines(pass, "test('fails', () => { expect(1).toBe(2) })") })
  expect(run).toEqual({ last: 'Tests: 1 passed, 1 failed', code: 1 })
})

test('an error outside every test counts as failed', async () => {
  const stray =
    "test('leaves one behind', async () => { void Promise.reject(new Error('stray')); await new Promise((r) => setTimeout(r, 50)) })"
  const run = await runVitest('stray', { 'a.case.ts': lines(stray) })
  expect(run).toEqual({ last: 'Tests: 1 passed, 1 failed', code: 1 })
})

test('a file that does not load counts as failed', async () => {
  const run = await runVitest('load', { 'a.case.ts': lines("throw new Error('no')"), 'b.case.ts': lines(pass) })
  expect(run).toEqual({ last: 'Tests: 1 passed, 1 failed', code: 1 })
})

test('a hook that throws counts as failed', async () => {
  const suite = "describe('suite', () => { beforeAll(() => { throw new Error('no') })\n" + pass + '})'
  const run = await runVitest('hook', { 'a.case.ts': lines(suite) })
  expect(run).toEqual({ last: 'Tests: 0 passed, 1 failed, 1 skipped', code: 1 })
})

test('a global setup that throws counts as failed', async () => {
  const files = { 'a.case.ts': lines(pass), 'setup.ts': "export const setup = () => { throw new Error('no server') }" }
  const run = await runVitest('setup', files, "globalSetup: ['./setup.ts']")
  expect(run).toEqual({ last: 'Tests: 0 passed, 1 failed', code: 1 })
})

test('a process that leaves with exit code 0 before the end counts as failed', async () => {
  const files = { 'a.case.ts': lines(pass), 'setup.ts': 'export const setup = () => { process.exit(0) }' }
  const run = await runVitest('leave', files, "globalSetup: ['./setup.ts']")
  expect(run).toEqual({ last: 'Tests: 0 passed, 1 failed', code: 1 })
})

test('a run that finds no test counts as failed', async () => {
  expect(await runVitest('none', {})).toEqual({ last: 'Tests: 0 passed, 1 failed', code: 1 })
})
