import { spawn } from 'node:child_process'
import { delimiter, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))

/**
 * Runs a program of the installed dependencies. Resolves with its output when it failed, else with an empty text.
 * `cwd` is the root of the repository unless given.
 */
export async function runTool(name, args, { cwd = root } = {}) {
  const windows = process.platform === 'win32'
  const child = spawn(windows ? `${name}.cmd` : name, args, {
    cwd,
    shell: windows,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      // turbo looks for pnpm here, which is a devDependency so that nobody needs it installed.
      PATH: [join(root, 'node_modules', '.bin'), process.env.PATH].join(delimiter),
      NO_COLOR: '1',
      FORCE_COLOR: undefined,
      TURBO_TELEMETRY_DISABLED: '1',
    },
  })
  const exit = new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })
  const [output, errors, code] = await Promise.all([text(child.stdout), text(child.stderr), exit])
  return code === 0 ? '' : `${output}${errors}\n${name} ended with exit code ${code}.`
}
