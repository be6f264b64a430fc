import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** What -D sets: names of bounds.pml with numbers, and names of rules taken away with `true`. */
export type Defines = Readonly<Record<string, number | string | true>>

export interface Search {
  /** States stored. */
  readonly states: number
  readonly transitions: number
  /** Longest execution, or the length of the one that breaks a promise. */
  readonly depth: number
  readonly errors: number
  readonly seconds: number
  readonly megabytes: number
  /** Steps of the execution that breaks a promise, as the model prints them. */
  readonly steps: readonly string[]
}

/**
 * exhaustive: every state, looking for one in which an assertion does not hold, as a broken promise is.
 * compressed: the same in a third of the memory and twice the time.
 * endless: the same, and for an execution that never ends, in twice the states and five times the time.
 * shortest: breadth first, so that what it finds is as short as can be.
 */
export type Way = 'exhaustive' | 'compressed' | 'endless' | 'shortest'

/** How the model begins what it prints when a promise is broken. */
export const namesPromise = /^(P2|P3|Attempts|Repeats):/

const model = fileURLToPath(new URL('lane.pml', import.meta.url))

/** Longer executions than this do not exist in any scope; a search that meets one is refused as truncated. */
const maxDepth = 20_000

/**
 * Partial order reduction is off: everything here is shared, so it saves nothing. The shortest searches end before an
 * optimised compilation would.
 */
const compilation: Record<Way, readonly string[]> = {
  exhaustive: ['-O2', '-DSAFETY', '-DNOREDUCE', '-DMEMLIM=3000'],
  compressed: ['-O2', '-DSAFETY', '-DNOREDUCE', '-DCOLLAPSE', '-DMEMLIM=12000'],
  endless: ['-O2', '-DNP', '-DNOFAIR', '-DNOREDUCE', '-DMEMLIM=4000'],
  shortest: ['-O0', '-DSAFETY', '-DBFS', '-DNOREDUCE', '-DMEMLIM=3000'],
}

/**
 * Lets spin search the model under these defines.
 *
 * @throws Error when the search was not complete, whatever the reason.
 */
export async function search(way: Way, defines: Defines): Promise<Search> {
  const folder = await mkdtemp(join(tmpdir(), 'inorder-model-'))
  try {
    const flags = Object.entries({ ...defines, ...(way === 'shortest' ? { SHORTEST: true } : {}) }).map(
      ([name, value]) => (typeof value === 'boolean' ? `-D${name}` : `-D${name}=${String(value)}`),
    )
    await run('spin', ['-a', ...flags, model], folder)
    await run('gcc', ['-w', ...compilation[way], '-o', 'pan', 'pan.c'], folder)
    const begin = performance.now()
    const output = await run('./pan', [`-m${String(maxDepth)}`, ...(way === 'endless' ? ['-l'] : [])], folder)
    const seconds = (performance.now() - begin) / 1000
    const found = readOutput(output)
    const steps = found.errors === 0 ? [] : readSteps(await replay(folder, flags))
    return { ...found, seconds, steps }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** What the model prints along the execution that broke a promise. Spin calls its end a failed assertion, which it is. */
function replay(folder: string, flags: readonly string[]): Promise<string> {
  return run('spin', ['-t', '-T', '-k', join(folder, 'lane.pml.trail'), ...flags, model], folder, [0, 1])
}

function run(
  program: string,
  args: readonly string[],
  cwd: string,
  codes: readonly (number | string | undefined)[] = [0],
): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { cwd, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error === null || codes.includes(error.code ?? undefined)) resolve(stdout)
      else reject(new Error(`${program} ${args.join(' ')} failed:\n${stdout}${stderr}`, { cause: error }))
    })
  })
}

/** Spin's own words count: it must have counted its errors, and have stopped early only because of one. */
function readOutput(output: string): Omit<Search, 'steps' | 'seconds'> {
  const number = (pattern: RegExp): number => {
    const text = pattern.exec(output)?.[1]
    if (text === undefined) throw new Error(`spin did not say how many (${pattern.source}):\n${output}`)
    return Number(text)
  }
  const errors = number(/errors: (\d+)/)
  const cutShort = /max search depth too small|not completed|out of memory|memory limit|truncated/i.exec(output)
  if (errors === 0 && cutShort !== null) throw new Error(`spin left something unexplored (${cutShort[0]}):\n${output}`)
  return {
    errors,
    states: number(/([\d.e+]+) states, stored/),
    transitions: number(/([\d.e+]+) transitions/),
    depth: number(/depth reached (\d+)/),
    megabytes: number(/([\d.e+]+)\s+total actual memory usage/),
  }
}

/** The replay goes on after the step that breaks a promise; the trace ends with it. */
function readSteps(replay: string): string[] {
  const steps = replay.split('\n').flatMap((line) => (line.trim().startsWith('@') ? [line.trim().slice(1).trim()] : []))
  const end = steps.findIndex((step) => namesPromise.test(step))
  return end === -1 ? steps : steps.slice(0, end + 1)
}
