import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root, runTool } from './run-tool.mjs'

/** The folders of the packages that are published. */
export function publicPackages() {
  return readdirSync(join(root, 'packages'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(root, 'packages', entry.name))
    .filter((folder) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).private !== true)
}

/** Builds every package, packs the public ones as they would be published, and looks at what came out. */
export async function checkPackages() {
  const build = await runTool('turbo', ['run', 'build', '--output-logs=errors-only', '--ui=stream'])
  if (build !== '') return build
  const wrong = []
  for (const folder of publicPackages()) {
    const target = mkdtempSync(join(tmpdir(), 'inorder-pack-'))
    try {
      wrong.push(await checkPacked(folder, target))
    } finally {
      rmSync(target, { recursive: true, force: true })
    }
  }
  return wrong.join('')
}

async function checkPacked(folder, target) {
  const pack = await runTool('pnpm', ['pack', '--pack-destination', target], { cwd: folder })
  if (pack !== '') return pack
  // The tarball and not the folder: packing replaces the exports and the workspace versions.
  const tarball = join(target, readdirSync(target)[0])
  const lint = await runTool('publint', [tarball, '--strict'])
  const types = await runTool('attw', ['--profile', 'esm-only', '--no-color', tarball])
  return lint + types
}
