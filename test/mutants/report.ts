import pc from 'picocolors'
import type { Mutant } from './mutant.ts'
import type { Result } from './results.ts'

const colours = pc.createColors(process.stdout.isTTY && process.env.NO_COLOR === undefined)

/** Prints the table of all results, and below it those that show a hole. */
export function printResults(mutants: readonly Mutant[], results: readonly Result[]): void {
  const head = ['mutant', 'promise', 'file', 'seconds', 'test that failed']
  const rows = results.map(({ mutant: name, fate, by, seconds }) => {
    const mutant = mutants.find((each) => each.name === name)
    const file = mutant?.file.replace('packages/core/src/', '') ?? ''
    return [name, mutant?.promise ?? '', file, seconds.toFixed(1), fate === 'killed' ? by : fate.toUpperCase()]
  })
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)))
  for (const row of [head, ...rows])
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
  const left = results.filter(({ fate }) => fate !== 'killed')
  for (const { mutant: name, fate, by } of left) {
    const mutant = mutants.find((each) => each.name === name)
    console.log(colours.red(`${fate.toUpperCase()} ${name}: ${mutant?.breaks ?? ''} ${by}`))
  }
  console.log(`\n${results.length - left.length} of ${results.length} mutants killed.`)
}
