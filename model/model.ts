import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { available } from '@inorder/harness'
import { hasTest, type Rule } from './rule.ts'
import { rules, spared } from './rules.ts'
import { type Scope, scopes } from './scopes.ts'
import { type Defines, type Search, search, type Way } from './spin.ts'
import { brokenPromise, traceLength, traceText } from './trace.ts'

// `npm run model`: searches every scope whole, takes away every rule and compares the counterexamples with the kept
// ones. --quick leaves out scopes for CI, --large adds those that take minutes and gigabytes, --only NAME takes one
// scope or rule, --write keeps new traces. Tables on stdout, progress on stderr; --json ends with one JSON object. Exit
// codes: 0 all holds, 1 not, or spin is missing, 2 wrong options.

interface Line {
  readonly name: string
  readonly ok: boolean
  readonly cells: readonly string[]
}

interface Work {
  readonly name: string
  readonly run: () => Promise<Line>
}

const tracesFolder = fileURLToPath(new URL('traces/', import.meta.url))
const given = readOptions()
/** Searches that run beside each other; the large ones need the memory for themselves. */
const atOnce = given.large ? 1 : 2

// Nothing was searched, so nothing holds.
if (!available('spin')) process.exit(1)

const began = performance.now()
const searched = await inTurn(scopeWorks())
const broken = await inTurn(rules.filter(isAsked).map((rule) => ({ name: rule.name, run: () => takeAway(rule) })))
const strays = given.only === undefined ? strayTraces() : []
if (given.write) await Promise.all(strays.map((file) => rm(join(tracesFolder, file))))
report()

function report(): void {
  const ok = [...searched, ...broken].every((line) => line.ok) && (given.write || strays.length === 0)
  if (searched.length > 0)
    table(['scope', 'searched for', 'states', 'transitions', 'longest', 'MB', 'seconds', ''], searched)
  if (broken.length > 0) table(['rule taken away', 'breaks', 'steps', 'states', 'kept trace', ''], broken)
  for (const file of strays) console.log(`\ntraces/${file} belongs to no rule.`)
  const seconds = (performance.now() - began) / 1000
  console.log(`\n${ok ? 'Everything holds' : 'Something does not hold'} (${seconds.toFixed(0)} s).`)
  if (given.json) console.log(JSON.stringify({ ok, scopes: searched, rules: broken }))
  process.exitCode = ok ? 0 : 1
}

function scopeWorks(): Work[] {
  const idle = given.large && given.only === undefined ? spared : []
  return [
    ...scopes.flatMap((scope) => {
      const way = wayOf(scope)
      return way === undefined ? [] : [scopeWork(scope.name, way, scope.defines)]
    }),
    ...idle.map(({ without, within }) =>
      scopeWork(`${without} changes nothing`, 'exhaustive', { ...within, [without]: true }),
    ),
  ]
}

/** Executions without an end are looked for too, where that is affordable; undefined leaves the scope out. */
function wayOf({ name, defines, quick, large }: Scope): Way | undefined {
  if (given.only !== undefined && given.only !== name) return undefined
  if (given.quick) return quick
  if (large === true) return given.large || given.only === name ? 'compressed' : undefined
  return 'ORDER_ONLY' in defines ? 'exhaustive' : 'endless'
}

function scopeWork(name: string, way: Way, defines: Defines): Work {
  const sought = way === 'endless' ? 'broken promises, no end' : 'broken promises'
  return {
    name,
    async run() {
      const found = await search(way, defines)
      const counts = [found.states, found.transitions, found.depth].map((count) => count.toLocaleString('en'))
      if (found.errors > 0) console.error(['', ...found.steps, ''].join('\n'))
      const costs = [found.megabytes.toFixed(0), found.seconds.toFixed(1)]
      const result = `errors: ${String(found.errors)}`
      return { name, ok: found.errors === 0, cells: [name, sought, ...counts, ...costs, result] }
    },
  }
}

/** Without its rule the model must break a promise, the same way as in the kept trace; and its test must exist. */
async function takeAway(rule: Rule): Promise<Line> {
  const found = await search('shortest', { ...rule.within, [rule.without]: true })
  const kept = found.errors === 0 ? 'none' : await compareTrace(rule, found)
  const tested = hasTest(rule)
  const ok = found.errors > 0 && brokenPromise(found) !== '' && kept !== 'differs' && kept !== 'missing' && tested
  const cells = [
    rule.name,
    brokenPromise(found) || 'nothing',
    String(traceLength(found)),
    found.states.toLocaleString('en'),
    kept,
    tested ? '' : `no test: ${rule.test.title}`,
  ]
  return { name: rule.name, ok, cells }
}

async function compareTrace(rule: Rule, found: Search): Promise<'same' | 'differs' | 'missing' | 'written'> {
  const path = join(tracesFolder, `${rule.name}.md`)
  const text = traceText(rule, found)
  if (given.write) {
    await mkdir(tracesFolder, { recursive: true })
    await writeFile(path, text)
    return 'written'
  }
  if (!existsSync(path)) return 'missing'
  return readFileSync(path, 'utf8') === text ? 'same' : 'differs'
}

/** Traces of rules that are no more. */
function strayTraces(): string[] {
  if (!existsSync(tracesFolder)) return []
  return readdirSync(tracesFolder).filter((file) => !rules.some(({ name }) => file === `${name}.md`))
}

async function inTurn(works: readonly Work[]): Promise<Line[]> {
  const lines: Line[] = []
  const left = works.map((work, index) => ({ work, index }))
  const worker = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const { work, index } = next
      const begin = performance.now()
      // A search that could not be completed proves nothing; the others go on.
      lines[index] = await work.run().catch((cause: unknown) => {
        console.error(cause)
        return { name: work.name, ok: false, cells: [work.name, 'not completed'] }
      })
      const seconds = ((performance.now() - begin) / 1000).toFixed(1).padStart(6)
      console.error(`${seconds} s  ${lines[index].ok ? 'ok    ' : 'FAILED'} ${work.name}`)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return lines
}

function table(head: readonly string[], lines: readonly Line[]): void {
  const rows = [head, ...lines.map(({ cells }) => cells)]
  const widths = head.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  console.log('')
  for (const row of rows)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
}

function isAsked({ name }: { readonly name: string }): boolean {
  return given.only === undefined || given.only === name
}

interface Given {
  readonly json: boolean
  readonly quick: boolean
  readonly large: boolean
  readonly write: boolean
  readonly only: string | undefined
}

function readOptions(): Given {
  const names = [...scopes, ...rules].map(({ name }) => name)
  const flag = { type: 'boolean', default: false } as const
  try {
    const { json, quick, large, write, only } = parseArgs({
      options: { json: flag, quick: flag, large: flag, write: flag, only: { type: 'string' } },
    }).values
    if (only !== undefined && !names.includes(only)) throw new Error(`Nothing is named ${only}.`)
    if (quick && large) throw new Error('--quick and --large exclude each other.')
    return { json, quick, large, write, only }
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    console.error(`Options: --json --quick --large --write --only NAME, where NAME is one of:\n  ${names.join('\n  ')}`)
    process.exit(2)
  }
}
