import { Command, InvalidArgumentError } from 'commander'
import pc from 'picocolors'
import type { Benchmark, BenchmarkOptions, BenchmarkResult } from './benchmark.ts'
import { blocked } from './blocked.ts'
import { bystanders } from './bystanders.ts'
import { drain } from './drain.ts'
import { enqueue } from './enqueue.ts'
import { fetch } from './fetch.ts'
import { describe, judge } from './figure.ts'
import { memory } from './memory.ts'
import { relays } from './relays.ts'
import { requeue } from './requeue.ts'
import { save as writeResult } from './save.ts'
import { soak } from './soak.ts'
import { steady } from './steady.ts'
import { formatTable } from './table.ts'
import { takeover } from './takeover.ts'
import { wake } from './wake.ts'

// `npm run bench -- NAME`: one benchmark with its own servers. Tables on stdout, progress on stderr. Exit codes: 0 every
// figure that is held was reached or near, 1 one was missed or a promise broke, 2 wrong options.

const benchmarks: readonly Benchmark[] = [
  fetch,
  blocked,
  drain,
  relays,
  steady,
  bystanders,
  takeover,
  memory,
  wake,
  enqueue,
  requeue,
  soak,
]
const colours = pc.createColors(process.stdout.isTTY && process.env.NO_COLOR === undefined)

interface Given extends BenchmarkOptions {
  readonly json: boolean
  readonly save: boolean
}

const command = new Command('npm run bench --')
  .argument('[name]', benchmarks.map(({ name }) => name).join(', '))
  .option('--rows <n>', 'size of the benchmark; each has its own default', whole)
  .option('--repetitions <n>', 'how often each way is measured', whole, 3)
  .option('--seconds <n>', 'how long each phase lasts where time is the size', whole, 20)
  .option('--cap-seconds <n>', 'longest time for the obvious query', whole, 10)
  .option('--only <parts>', 'parts to run, comma separated, by the beginning of their names', (text) => text.split(','))
  .option('--json', 'one JSON object with the figures by name as the last line', false)
  .option('--save', 'write the result into benchmarks/results', false)
  .addHelpText('after', `\nBenchmarks:\n${listed()}`)
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
  .parse()

const [name = ''] = command.args
const options = command.opts<Given>()
const benchmark = benchmarks.find((each) => each.name === name)
if (benchmark === undefined) {
  console.error(`${name === '' ? 'Name a benchmark' : `There is no benchmark ${name}`}. There are:\n${listed()}`)
  process.exit(2)
}

const began = performance.now()
function say(line: string): void {
  console.error(`${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${line}`)
}

const result = await benchmark.run({ ...options, say })
process.exitCode = await report(benchmark, result, options)

async function report({ name: bench }: Benchmark, given: BenchmarkResult, { json, save }: Given): Promise<number> {
  const { tables, figures, environment, broken } = given
  for (const table of tables) console.log(`\n${formatTable(table)}`)
  console.log('')
  const missed = figures.filter((figure) => judge(figure) === 'missed')
  for (const figure of figures) {
    const verdict = judge(figure)
    if (verdict !== undefined)
      console.log(colours[verdict === 'reached' ? 'green' : verdict === 'near' ? 'yellow' : 'red'](describe(figure)))
  }
  for (const what of broken) console.log(colours.red(`BROKEN ${what}`))
  console.log(
    `\n${Object.entries(environment)
      .map(([key, value]) => `${key} ${value}`)
      .join(', ')}`,
  )
  const document = {
    bench,
    ok: missed.length === 0 && broken.length === 0,
    missed: missed.map((figure) => figure.name),
    broken,
    figures: Object.fromEntries(figures.map((figure) => [figure.name, figure.value])),
    targets: Object.fromEntries(
      figures
        .filter(({ target }) => target !== undefined)
        .map((figure) => [figure.name, { ...figure.target, verdict: judge(figure) }]),
    ),
    environment,
  }
  if (save) {
    await writeResult(bench, document)
    say(`written to benchmarks/results/${bench}.json`)
  }
  for (const figure of missed) console.error(colours.red(`MISSED ${describe(figure)}`))
  if (json) console.log(JSON.stringify(document))
  return document.ok ? 0 : 1
}

function listed(): string {
  return benchmarks.map(({ name: each, about }) => `  ${each.padEnd(10)} ${about}`).join('\n')
}

function whole(text: string): number {
  const value = Number(text)
  if (text === '' || !Number.isInteger(value) || value < 1)
    throw new InvalidArgumentError('It must be a whole number from 1.')
  return value
}
