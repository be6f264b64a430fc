import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freshDatabase } from '@inorder/harness'
import pg from 'pg'
import ts from 'typescript'
import { expect, onTestFinished, test } from 'vitest'
import { startProgram } from './run-program.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const example = /```ts\n([^]*?)```/.exec(readFileSync(join(root, 'README.md'), 'utf8'))?.[1] ?? ''

/** Beside the packages it imports, and where no check of the repository looks. */
function writeExample(): string {
  const file = join(root, 'test/.cache', `readme-example-${process.pid}.ts`)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `${example}export {}\n`)
  onTestFinished(() => {
    rmSync(file)
  })
  return file
}

function compilerProblems(file: string): string[] {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) => ts.sys.readFile(path)) as {
    config: object
  }
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: [file] }, ts.sys, root)
  return (
    ts
      // The libraries' own declarations are checked with the rest of the repository.
      .getPreEmitDiagnostics(ts.createProgram([file], { ...options, skipLibCheck: true }))
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
  )
}

async function databaseWithOrders(): Promise<string> {
  const url = await freshDatabase()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('create table orders (id integer primary key, status text not null)')
  await client.end()
  return url
}

test('the example is one that a page has room for', () => {
  const lines = example.split('\n').filter((line) => line.trim() !== '')
  expect(lines.length).toBeGreaterThan(5)
  expect(lines.length).toBeLessThanOrEqual(15)
})

test('the example compiles under the strict settings of the repository', { timeout: 300_000 }, () => {
  expect(compilerProblems(writeExample())).toEqual([])
})

test('the example publishes what it committed', { timeout: 300_000 }, async () => {
  const DATABASE_URL = await databaseWithOrders()
  const end = await startProgram(writeExample(), [], { ...process.env, DATABASE_URL }).end
  expect(end, end.stderr).toMatchObject({ how: 0, stdout: 'order-1 order.placed\n' })
})
