import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Figures } from './figures.ts'
import { markdownTable, replaceTable } from './readme-table.ts'

const folder = new URL('./results/', import.meta.url)
const readme = new URL('./README.md', import.meta.url)

interface Result extends Figures {
  readonly minutes: number
  readonly on: string
}

/** Keeps a result as JSON, and writes the table of all kept results into the README. */
export async function saveResult(figures: Figures, minutes: number): Promise<void> {
  await mkdir(folder, { recursive: true })
  const result: Result = { on: new Date().toISOString().slice(0, 10), minutes, ...figures }
  await writeFile(new URL(`${figures.campaign}.json`, folder), `${JSON.stringify(result, undefined, 2)}\n`)
  const names = (await readdir(fileURLToPath(folder))).filter((name) => name.endsWith('.json')).toSorted()
  const results = await Promise.all(
    names.map(async (name) => JSON.parse(await readFile(new URL(name, folder), 'utf8')) as Result),
  )
  const text = await readFile(readme, 'utf8')
  await writeFile(readme, replaceTable(text, resultsTable(results)))
}

const columns = [
  'campaign',
  'minutes',
  'events',
  'faults',
  'lost',
  'out of order',
  'duplicates explained',
  'unexplained',
]

export function resultsTable(results: readonly Result[]): string {
  const rows = results.map((result) => [
    result.campaign,
    String(result.minutes),
    result.events.toLocaleString('en-US'),
    Object.entries(result.faults)
      .map(([kind, count]) => `${count} ${kind}`)
      .join(', '),
    String(result.lost),
    `${result.outOfOrder} of ${result.pairs.toLocaleString('en-US')} pairs`,
    String(result.duplicates - result.unexplained),
    String(result.unexplained),
  ])
  return markdownTable(columns, rows)
}
