import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = join(dirname(dirname(fileURLToPath(import.meta.url))), 'results')
const lineWidth = 120

/** Writes a result into `benchmarks/results`, formatted as the repository's formatter would. */
export async function save(name: string, document: object): Promise<void> {
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, `${name}.json`), `${format(document)}\n`)
}

function format(document: object): string {
  const expanded = JSON.stringify(document, undefined, 2)
  // A list of plain values goes on one line where it fits.
  return expanded.replace(
    /^( *)((?:"[^"\n]*": )?)\[\n([^[\]{}]*?)\n *\]/gm,
    (whole, indent: string, key: string, inner: string) => {
      const line = `${indent}${key}[${inner
        .split('\n')
        .map((part) => part.trim())
        .join(' ')}]`
      return line.length < lineWidth ? line : whole
    },
  )
}
