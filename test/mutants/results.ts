import { readFile, writeFile } from 'node:fs/promises'
import { markdownTable, replaceTable } from '../campaigns/readme-table.ts'
import type { Verdict } from './judge.ts'
import { type Mutant, promises } from './mutant.ts'

const file = new URL('./results.json', import.meta.url)
const readme = new URL('./README.md', import.meta.url)

/** What became of one mutant. */
export interface Result extends Verdict {
  readonly mutant: string
  readonly seconds: number
}

/** Keeps the results as JSON, beside those of mutants that were not asked for, and writes the table of the README. */
export async function saveResults(mutants: readonly Mutant[], fresh: readonly Result[]): Promise<void> {
  const kept = JSON.parse(await readFile(file, 'utf8').catch(() => '[]')) as Result[]
  const results = new Map([...kept, ...fresh].map((result) => [result.mutant, result]))
  const known = mutants.flatMap(({ name }) => results.get(name) ?? [])
  await writeFile(file, `${JSON.stringify(known, undefined, 2)}\n`)
  await writeFile(readme, replaceTable(await readFile(readme, 'utf8'), table(mutants, known)))
}

const columns = ['mutant', 'promise', 'what it breaks', 'file', 'test that failed', 'seconds']

function table(mutants: readonly Mutant[], results: readonly Result[]): string {
  const rows = mutants.map(({ name, promise, breaks, file }) => {
    const result = results.find(({ mutant }) => mutant === name)
    return [
      name,
      `${promise}: ${promises[promise]}`,
      breaks,
      file.replace('packages/core/src/', ''),
      result === undefined
        ? '**not run yet**'
        : result.fate === 'killed'
          ? result.by
          : `**${result.fate}** ${result.by}`,
      result?.seconds.toFixed(0) ?? '',
    ]
  })
  return markdownTable(columns, rows)
}
