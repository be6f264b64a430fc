// Runs the tests. Arguments go to vitest, so `npm test -- proxy` runs the files whose path contains "proxy".
// With --json: progress on stderr, and {passed, failed, skipped, ok} as the last line on stdout.
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { closingText } from './closing-text.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const json = process.argv.includes('--json')
const args = process.argv.slice(2).filter((argument) => argument !== '--json')
const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
const run = spawn(process.execPath, [vitest, 'run', ...args], {
  cwd: root,
  // The fourth is a pipe on which the closing-line reporter tells what it counted.
  stdio: ['ignore', json ? 2 : 'inherit', 'inherit', 'pipe'],
  env: { ...process.env, INORDER_TALLY_FD: '3' },
})
// Vitest stops its servers when it is interrupted; this process waits for that and then still prints the last line.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => run.kill(signal))

const told = text(run.stdio[3])
run.on('close', async (code, signal) => {
  const status = code ?? 128 + constants.signals[signal]
  // Silence means that vitest was killed or never got as far as its reporter: a failed run.
  const tally = JSON.parse((await told) || '{"passed":0,"failed":1,"skipped":0}')
  if (status !== 0 && tally.failed === 0) tally.failed = 1
  const ok = tally.failed === 0
  console.log(json ? JSON.stringify({ ...tally, ok }) : closingText(tally))
  process.exitCode = ok ? 0 : status || 1
})
