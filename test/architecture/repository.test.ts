import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { ownFiles } from '../../tools/text-checks.mjs'
import { type Manifest, packageFaults } from './package-rules.ts'
import { indexFaults, nameFaults, type Rule, sizeFaults, sqlFaults, timerFaults } from './rules.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const files = ownFiles(root)
const sources = files.filter((path) => /\.(ts|mjs|cjs)$/.test(path))

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

function faults(rule: Rule, paths: string[]): string[] {
  return paths.flatMap((path) => rule(path, read(path)))
}

const manifests = files
  .filter((path) => /^packages\/[^/]+\/package\.json$/.test(path))
  .map((path) => ({ folder: path.replace('/package.json', ''), manifest: JSON.parse(read(path)) as Manifest }))
  .filter(({ manifest }) => manifest.private !== true)

test('there is something to look at', () => {
  expect(sources.length).toBeGreaterThan(30)
  expect(manifests.length).toBeGreaterThan(3)
})

test('SQL appears only in storage and migrations', () => {
  expect(faults(sqlFaults, sources)).toEqual([])
})

test('only the relay and its pace own timers', () => {
  expect(faults(timerFaults, sources)).toEqual([])
})

test('files have kebab-case names that say what is inside', () => {
  expect(files.flatMap((path) => nameFaults(path, ''))).toEqual([])
})

test('no file has more than 250 lines of code', () => {
  expect(faults(sizeFaults, sources)).toEqual([])
})

test('an index only re-exports', () => {
  expect(faults(indexFaults, sources)).toEqual([])
})

test('every public package has a README and the license', () => {
  const missing = manifests.flatMap(({ folder }) =>
    ['README.md', 'LICENSE'].map((file) => `${folder}/${file}`).filter((path) => !existsSync(join(root, path))),
  )
  expect(missing).toEqual([])
  for (const { folder } of manifests) expect(read(`${folder}/LICENSE`)).toBe(read('LICENSE'))
})

test('public packages have the same fields', () => {
  const core = manifests.find(({ manifest }) => manifest.name === '@inorder/core')
  if (core === undefined) throw new Error('packages/core is gone')
  expect(manifests.flatMap(({ manifest }) => packageFaults(manifest, core.manifest))).toEqual([])
})

test('every guarantee is listed with a test that exists', () => {
  const listed = [...read('docs/explanation/guarantees.md').matchAll(/^\|.*\| `(.+?)`: (.+) \|$/gm)]
  expect(listed.length).toBeGreaterThan(20)
  const missing = listed.filter(
    ([, path = '', title = '']) => !existsSync(join(root, path)) || !read(path).includes(title),
  )
  expect(missing.map(([row]) => row)).toEqual([])
})
