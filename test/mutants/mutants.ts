import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { available } from '@inorder/harness'
import { createDisposal, type Disposal } from '../campaigns/disposal.ts'
import { catalogue } from './catalogue.ts'
import { faultsOf, judge } from './judge.ts'
import { controlOf, misplaced, type Mutant } from './mutant.ts'
import { readMutantOptions } from './mutant-options.ts'
import { printResults } from './report.ts'
import { type Result, saveResults } from './results.ts'
import { runTests } from './run-tests.ts'
import { copyWorkingTree, type WorkingCopy } from './working-copy.ts'

// `npm run mutants`: makes one line of the engine wrong at a time and shows which test fails. Progress goes to stderr, a
// table to stdout. Exit codes: 0 every mutant was killed, 1 one was not, 2 wrong options, 130 interrupted.

const root = fileURLToPath(new URL('../../', import.meta.url))
const names = catalogue.map(({ name }) => name)
const options = readMutantOptions(process.argv.slice(2), names)
const mutants = catalogue.filter(({ name }) => options.only.length === 0 || options.only.includes(name))
const began = performance.now()

const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.once(name, () => {
    process.exitCode = 128 + constants.signals[name]
    interrupted.abort(new Error(`ended by ${name}`))
  })
}

const isInterrupted = (): boolean => interrupted.signal.aborted

function say(line: string): void {
  console.error(`${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${line}`)
}

function refuse(faults: readonly string[]): void {
  for (const fault of faults) console.error(fault)
  if (faults.length > 0) process.exitCode ??= 1
}

/** The unchanged engine has to pass, or a failure says nothing about a mutant. */
async function passesUnchanged(copy: WorkingCopy): Promise<boolean> {
  const tests = mutants.flatMap((mutant) => [mutant.test, controlOf(mutant) ?? mutant.test])
  say(`the tests of ${mutants.length} mutants without any`)
  const faults = faultsOf(tests, await runTests(copy.folder, tests, interrupted.signal))
  if (isInterrupted()) return false
  refuse(faults)
  return faults.length === 0
}

async function play(mutant: Mutant, copy: WorkingCopy): Promise<Result> {
  const start = performance.now()
  const takeOut = await copy.put(mutant)
  const control = controlOf(mutant)
  const tests = control === undefined ? [mutant.test] : [mutant.test, control]
  const verdict = judge(mutant, await runTests(copy.folder, tests, interrupted.signal))
  await takeOut()
  return { mutant: mutant.name, ...verdict, seconds: Math.round((performance.now() - start) / 100) / 10 }
}

/** Plays one mutant after another in each copy, and returns the results in the order of the catalogue. */
async function playAll(copies: readonly WorkingCopy[]): Promise<Result[]> {
  const results: Result[] = []
  const left = [...mutants.entries()]
  const worker = async (copy: WorkingCopy): Promise<void> => {
    for (let next = left.shift(); next !== undefined && !isInterrupted(); next = left.shift()) {
      const [index, mutant] = next
      const result = await play(mutant, copy)
      if (isInterrupted()) return
      results[index] = result
      say(`${result.fate.padEnd(8)} ${mutant.name}: ${result.by}`)
    }
  }
  await Promise.all(copies.map(worker))
  return results
}

async function run(disposal: Disposal): Promise<void> {
  const misplacements = mutants.flatMap((mutant) => {
    const fault = misplaced(mutant, readFileSync(join(root, mutant.file), 'utf8'))
    return fault === undefined ? [] : [`${mutant.name}: ${fault}`]
  })
  refuse(misplacements)
  if (misplacements.length > 0) return
  const made: WorkingCopy[] = []
  for (let number = 0; number < Math.min(options.workers, mutants.length); number++)
    made.push(disposal.use(await copyWorkingTree(root)))
  const [first] = made
  if (first === undefined || !(await passesUnchanged(first))) return
  const results = await playAll(made)
  if (isInterrupted()) return
  printResults(mutants, results)
  if (options.save) await saveResults(catalogue, results)
  const ok = results.every(({ fate }) => fate === 'killed')
  if (options.json) console.log(JSON.stringify({ ok, results }))
  process.exitCode = ok ? 0 : 1
}

const disposal = createDisposal()
try {
  if (available('postgres', { own: true })) await run(disposal)
} finally {
  await disposal.run()
}
if (isInterrupted()) say('interrupted; the copies were removed')
