import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { afterAll, describe, expect, it } from 'vitest'
import { generatePrisma } from './generated-prisma.ts'

const root = fileURLToPath(new URL('../../../../', import.meta.url))
const readme = readFileSync(join(root, 'packages/core/README.md'), 'utf8')
const section = /### With your database library\n([^]*?)\n### /.exec(readme)?.[1] ?? ''
const snippets = new Map(
  [...section.matchAll(/#### (.+)\n\n```ts\n([^]*?)```/g)].map(([, library = '', code = '']) => [library, code]),
)
const libraries = [...section.matchAll(/^\| \[(.+?)\]\(#(.+?)\)/gm)].map(([, library = '']) => library)

/** Beside the libraries that they import, and where no check of the repository looks. */
const folder = join(root, 'packages/core/test/.cache', `snippets-${String(process.pid)}`)
mkdirSync(folder, { recursive: true })
const prisma = await generatePrisma()
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await prisma[Symbol.asyncDispose]()
})

function write(library: string, code: string): string {
  const file = join(folder, `${library}.ts`)
  writeFileSync(file, code.replace("'./generated/prisma/client.ts'", JSON.stringify(prisma.file)))
  return file
}

/** What the compiler says about each file, under the strict settings of the repository. */
function problemsOf(files: readonly string[]): string[] {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) => ts.sys.readFile(path)) as {
    config: object
  }
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files }, ts.sys, root)
  return ts
    .getPreEmitDiagnostics(ts.createProgram(files, options))
    .map(({ file, messageText }) => `${file?.fileName ?? ''}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`)
}

describe('the README', () => {
  it('has a snippet for each of the nine libraries of its table', () => {
    expect(libraries).toHaveLength(9)
    expect([...snippets.keys()]).toEqual(libraries)
  })

  it('has snippets that compile against the libraries that the tests use', { timeout: 300_000 }, () => {
    const good = [...snippets].map(([library, code]) => write(library, code))
    // One that must not compile: without it a compiler that reads nothing would find nothing wrong.
    const bad = write('wrong', (snippets.get('Drizzle') ?? '').replace("topic: 'orders'", 'topic: 7'))
    const problems = problemsOf([...good, bad])
    expect(problems.filter((problem) => !problem.startsWith(bad))).toEqual([])
    expect(problems.join('\n')).toContain("'number' is not assignable to type 'string'")
  })
})
