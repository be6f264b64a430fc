import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it, test } from 'vitest'
import { catalogue } from './catalogue.ts'
import { controlOf, misplaced, mutate, promises } from './mutant.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

function syntaxErrors(content: string): string[] {
  const { diagnostics = [] } = ts.transpileModule(content, { reportDiagnostics: true })
  return diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
}

describe.each(catalogue.map((mutant) => [mutant.name, mutant] as const))('the mutant %s', (_, mutant) => {
  it('has its text exactly once in a file that is there', () => {
    expect(existsSync(join(root, mutant.file))).toBe(true)
    expect(misplaced(mutant, read(mutant.file))).toBeUndefined()
  })

  it('is a program still', () => {
    expect(syntaxErrors(mutate(mutant, read(mutant.file)))).toEqual([])
  })

  it('names tests that are there', () => {
    for (const { file, title } of [mutant.test, controlOf(mutant) ?? mutant.test]) {
      expect(existsSync(join(root, file))).toBe(true)
      expect(read(file)).toContain(title)
    }
  })

  it('has its row in the table', () => {
    expect(read('test/mutants/README.md')).toContain(`| ${mutant.name} |`)
  })
})

test('every promise has a mutant that breaks it, and no two have one name', () => {
  expect(new Set(catalogue.map(({ promise }) => promise))).toEqual(new Set(Object.keys(promises)))
  expect(new Set(catalogue.map(({ name }) => name)).size).toBe(catalogue.length)
})
