import { describe, expect, test } from 'vitest'
import { lockFileFaults, machinePathFaults } from '../../tools/text-checks.mjs'
import { packageFaults } from './package-rules.ts'
import { indexFaults, nameFaults, sizeFaults, sqlFaults, timerFaults } from './rules.ts'

const somewhere = 'packages/core/src/relay/finder.ts'

describe('the SQL rule', () => {
  test.each([
    "const text = 'SELECT 1'",
    'const text = `\n  -- why\n  UPDATE ${table} SET status = $1`',
    "run('select id from events')",
    "run('insert into events values ($1)')",
    'const text = `with due as (select 1) select * from due`',
    "run('select pg_notify($1, $2)')",
    "const text = 'create table t (id int)'",
    "const text = 'delete from events'",
  ])('finds %s', (content) => {
    expect(sqlFaults(somewhere, content)).toHaveLength(1)
  })

  test.each([
    '// SELECT * FROM events is what we do not do',
    "throw new Error('update the schema first')",
    "throw new Error('select a publisher that has idempotence')",
    "const verb = 'delete'",
    "await client.query('BEGIN')",
    "const key = 'with-order'",
  ])('lets %s pass', (content) => {
    expect(sqlFaults(somewhere, content)).toEqual([])
  })

  test('knows where SQL lives', () => {
    expect(sqlFaults('packages/core/src/storage/find.ts', "'SELECT 1'")).toEqual([])
    expect(sqlFaults('packages/core/src/migrations/0001-tables.ts', "'CREATE TABLE t ()'")).toEqual([])
    expect(sqlFaults('packages/relay-memory/src/publisher.ts', "run('SELECT 1')")).toHaveLength(1)
  })
})

describe('the timer rule', () => {
  test.each([
    'setTimeout(run, 5)',
    'globalThis.setInterval(run, 5)',
    "import { setTimeout as delay } from 'node:timers/promises'",
    "import * as clock from 'timers'",
  ])('finds %s', (content) => {
    expect(timerFaults(somewhere, content)).not.toEqual([])
  })

  test('lets the relay, its pace and a comment pass', () => {
    expect(timerFaults('packages/core/src/relay/relay.ts', 'setTimeout(run, 5)')).toEqual([])
    expect(timerFaults('packages/core/src/relay/pace.ts', 'setTimeout(run, 5)')).toEqual([])
    expect(timerFaults(somewhere, '// setTimeout would drift\nconst pace = 1')).toEqual([])
  })
})

describe('the name rule', () => {
  test.each([
    'src/laneRun.ts',
    'src/Lane.ts',
    'src/lane_run.ts',
    'src/utils.ts',
    'src/test-helpers.ts',
    'src/types.ts',
    'lib/lane.ts',
  ])('finds %s', (path) => {
    expect(nameFaults(path, '')).not.toEqual([])
  })

  test.each([
    'src/lane-run.ts',
    'src/0001-tables.ts',
    'src/handler-publisher.ts',
    'README.md',
    'LICENSE',
    '.gitignore',
    'a.unit.test.ts',
  ])('lets %s pass', (path) => {
    expect(nameFaults(path, '')).toEqual([])
  })
})

describe('the size rule', () => {
  test('counts code, not blank lines and comments', () => {
    const code = 'export const one = [\n  1,\n]\n'
    expect(sizeFaults(somewhere, code.repeat(83))).toEqual([])
    expect(sizeFaults(somewhere, `${code.repeat(83)}${'// why\n\n'.repeat(100)}/*\n${'*\n'.repeat(100)}*/`)).toEqual([])
    expect(sizeFaults(somewhere, code.repeat(84))).toEqual([`${somewhere}: 252 lines of code, 250 is the most`])
  })

  test('counts every line of a template', () => {
    expect(sizeFaults(somewhere, `const text = \`${'line\n'.repeat(251)}\``)).toHaveLength(1)
  })
})

describe('the index rule', () => {
  test('lets re-exports pass and finds everything else', () => {
    const path = 'packages/core/src/index.ts'
    expect(indexFaults(path, "export * from './a.ts'\nexport type { B } from './b.ts'")).toEqual([])
    expect(indexFaults(path, 'export const a = 1')).toHaveLength(1)
    expect(indexFaults(path, "import { a } from './a.ts'\nexport { a }")).toHaveLength(2)
  })
})

describe('the package rule', () => {
  const entry = { types: './dist/index.d.ts', default: './dist/index.js' }
  const good = {
    name: '@inorder/good',
    license: 'MIT',
    exports: { '.': { '@inorder/source': './src/index.ts', ...entry } },
    publishConfig: { exports: { '.': entry } },
  }

  test('lets a package like the others pass, whatever it depends on', () => {
    expect(packageFaults({ ...good, name: '@inorder/other', dependencies: { pg: '1' } }, good)).toEqual([])
  })

  test.each([
    ['a missing field', { name: 'x', exports: good.exports, publishConfig: good.publishConfig }],
    ['a field nobody else has', { ...good, main: 'index.js' }],
    ['another value', { ...good, license: 'ISC' }],
    ['an entry point that is not published', { ...good, exports: { ...good.exports, './more': {} } }],
    ['sources that are published', { ...good, publishConfig: { exports: good.exports } }],
    ['an entry point without its sources', { ...good, exports: { '.': entry } }],
  ])('finds %s', (_, manifest) => {
    expect(packageFaults(manifest, good)).not.toEqual([])
  })
})

describe('the text checks', () => {
  test('a lock file with download addresses is found', () => {
    expect(lockFileFaults('  resolution: {integrity: sha512-abc==}\n  deprecated: see https://example.org')).toEqual([])
    expect(lockFileFaults('  resolution: {tarball: https://registry.example.org/a.tgz}')).toHaveLength(1)
    expect(lockFileFaults('  resolution: {integrity: sha512-abc==, tarball: a.tgz}')).toHaveLength(1)
  })

  test('a path of one machine is found', () => {
    const home = ['', 'home', 'ann', 'inorder'].join('/')
    expect(machinePathFaults('a.md', `see ${home}/notes`, [])).toHaveLength(1)
    expect(machinePathFaults('a.md', 'see "/build/place/file"', ['/build/place'])).toHaveLength(1)
    expect(
      machinePathFaults('a.md', 'packages/build/place/file and https://x.org/build/place', ['/build/place']),
    ).toEqual([])
    expect(machinePathFaults('a.md', 'see /build/placebo', ['/build/place'])).toEqual([])
  })
})
