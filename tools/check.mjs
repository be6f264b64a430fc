// Runs every check, all of them even when one fails, and exits 1 when any failed.
// `npm run check -- lint types` runs only those. With --json: progress on stderr, one JSON object as the last stdout line.
import { checkLockFile, checkMachinePaths } from './text-checks.mjs'
import { root, runTool } from './run-tool.mjs'
import { checkPackages } from './package-checks.mjs'

// Cheap and telling ones first. A step resolves with what is wrong, as text; an empty text means nothing is.
const steps = {
  types: () => runTool('tsc', ['--noEmit']),
  lint: () => runTool('eslint', ['.', '--max-warnings=0']),
  format: () => runTool('biome', ['ci', '--colors=off', '.']),
  imports: () =>
    runTool('depcruise', [
      '--config',
      '.dependency-cruiser.cjs',
      'packages',
      'test',
      'tools',
      'model',
      'benchmarks',
      'examples',
    ]),
  unused: () => runTool('knip', ['--no-progress', '--no-config-hints']),
  packages: () => checkPackages(),
  lockfile: () => checkLockFile(root),
  paths: () => checkMachinePaths(root),
}

const json = process.argv.includes('--json')
const asked = process.argv.slice(2).filter((argument) => argument !== '--json')
const unknown = asked.filter((name) => !Object.hasOwn(steps, name))
if (unknown.length > 0) {
  console.error(`No check is named ${unknown.join(' or ')}. There are: ${Object.keys(steps).join(', ')}.`)
  process.exit(2)
}
const report = json ? console.error : console.log

const results = {}
for (const name of asked.length > 0 ? asked : Object.keys(steps)) {
  report(`check ${name} ...`)
  const begin = performance.now()
  const wrong = await steps[name]().catch((error) => `The check itself broke: ${error.stack}`)
  results[name] = { ok: wrong === '', ms: Math.round(performance.now() - begin) }
  if (wrong !== '') report(`${wrong.trimEnd()}\ncheck ${name} FAILED`)
}

report('')
for (const [name, { ok, ms }] of Object.entries(results)) {
  report(`${name.padEnd(10)} ${ok ? 'ok    ' : 'FAILED'} ${(ms / 1000).toFixed(1).padStart(6)} s`)
}
const ok = Object.values(results).every((result) => result.ok)
if (json) console.log(JSON.stringify({ ok, steps: results }))
process.exitCode = ok ? 0 : 1
