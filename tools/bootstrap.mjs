// Installs the pinned package manager's dependencies once, then costs a hash and a file read.
// Node and npm are all that is needed beforehand: npx brings pnpm in the version package.json pins.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(
    `Inorder needs Node 20.19 or newer, this is ${process.versions.node}. Install a newer Node and run the command again.`,
  )
  process.exit(2)
}

const { packageManager } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const hash = createHash('sha256')
for (const file of ['package.json', 'pnpm-lock.yaml', 'pnpm-workspace.yaml'])
  hash.update(readFileSync(join(root, file)))
hash.update(`${process.platform} ${process.arch}`)
const wanted = hash.digest('hex')
const stamp = join(root, 'node_modules', '.bootstrap-stamp')

if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
  const windows = process.platform === 'win32'
  // Installing is progress, not a result: it goes to stderr, so that `--json` scripts keep a clean stdout.
  const install = spawnSync(windows ? 'npx.cmd' : 'npx', ['--yes', packageManager, 'install', '--frozen-lockfile'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: windows,
    env: { ...process.env, CI: 'true' },
  })
  if (install.status !== 0) {
    console.error(
      `Installing the dependencies failed (exit ${install.status}). Check that the npm registry can be reached and run the command again.`,
    )
    process.exit(install.status ?? 1)
  }
  writeFileSync(stamp, wanted)
}
