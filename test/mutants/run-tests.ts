import { spawn } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { guardProcess, releaseProcess } from '@inorder/harness'
import type { NamedTest } from './mutant.ts'

/** One test that ran. */
export interface RanTest {
  readonly file: string
  /** Its own title behind those of the groups it is in. */
  readonly name: string
  readonly passed: boolean
  readonly errors: readonly string[]
}

export interface TestRun {
  readonly tests: readonly RanTest[]
  /** Why there is less to see than was asked for: a file that does not load, a run that did not end. */
  readonly trouble: string | undefined
}

/** What vitest's JSON reporter writes, as far as it is read here. */
interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly message: string
    readonly assertionResults: readonly {
      readonly fullName: string
      readonly status: string
      readonly failureMessages: readonly string[] | null
    }[]
  }[]
}

/** Longer than any file of the catalogue takes, even when one test after another runs into its timeout. */
const longestRunMs = 300_000

/** Runs the named tests in a copy of the repository, and nothing else of their files. */
export async function runTests(folder: string, tests: readonly NamedTest[], signal: AbortSignal): Promise<TestRun> {
  const files = [...new Set(tests.map(({ file }) => file))]
  const projects = new Set(files.map((file) => (file.endsWith('.unit.test.ts') ? 'unit' : 'integration')))
  const report = join(folder, 'report.json')
  await rm(report, { force: true })
  const output = await runVitest(
    folder,
    [
      ...[...projects].map((project) => `--project=${project}`),
      `--testNamePattern=${tests.map(({ title }) => patternOf(title)).join('|')}`,
      '--reporter=json',
      `--outputFile=${report}`,
      ...files,
    ],
    signal,
  )
  const written = await readFile(report, 'utf8').catch(() => undefined)
  if (written === undefined) return { tests: [], trouble: output.trim().split('\n').slice(-5).join('\n') }
  return readReport(JSON.parse(written) as Report, folder)
}

/** Matches a title of the source: what stands there for a value of a table matches anything. */
export function patternOf(title: string): string {
  return title.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/%[sdifjoO#]/g, '.*')
}

function readReport({ testResults }: Report, folder: string): TestRun {
  const tests = testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === 'passed' || status === 'failed')
      .map(({ fullName, status, failureMessages }) => ({
        file: name.slice(folder.length + 1),
        name: fullName,
        passed: status === 'passed',
        errors: failureMessages ?? [],
      })),
  )
  const messages = testResults.filter(({ message }) => message !== '').map(({ message }) => message)
  return { tests, trouble: messages.length === 0 ? undefined : messages.join('\n') }
}

async function runVitest(folder: string, args: readonly string[], signal: AbortSignal): Promise<string> {
  const vitest = join(folder, 'node_modules/vitest/vitest.mjs')
  const child = spawn(process.execPath, [vitest, 'run', ...args], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined, INORDER_TALLY_FD: undefined },
  })
  const { pid } = child
  // It ends its servers when it is interrupted, and they end it when this process is gone.
  if (pid !== undefined) guardProcess(pid, 'SIGTERM')
  const end = (): void => void child.kill('SIGTERM')
  const timer = setTimeout(end, longestRunMs)
  signal.addEventListener('abort', end)
  const ended = new Promise<void>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', () => resolve())
  })
  try {
    const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr), ended])
    return `${output}${errors}`
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', end)
    if (pid !== undefined) releaseProcess(pid)
  }
}
