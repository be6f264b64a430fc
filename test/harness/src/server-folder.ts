import { randomBytes } from 'node:crypto'
import { chownSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { guardFolder, releaseFolder } from './watchdog.ts'

export interface ServerFolder {
  readonly path: string
  remove(): void
}

export interface ServerUser {
  readonly uid: number
  readonly gid: number
}

/** Some servers refuse to run as root, so root lends them the user `nobody`; anyone else runs them as themselves. */
export function unprivilegedUser(): ServerUser | undefined {
  if (process.getuid?.() !== 0) return undefined
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith('nobody:'))
  const [, , uid = '65534', gid = '65534'] = line?.split(':') ?? []
  return { uid: Number(uid), gid: Number(gid) }
}

/** Whether users other than the owner can enter every folder on the way to `path`. */
export function isOpenToOthers(path: string): boolean {
  const others = statSync(path).mode & 0o005
  if (others !== 0o005) return false
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return false
    if (folder === dirname(folder)) return true
  }
}

/** Makes a private folder that is removed with `remove()` or, whatever happens, when this process is gone. */
export function createServerFolder(name: string, owner?: ServerUser): ServerFolder {
  // Some systems give root a private temporary folder, which the unprivileged server user cannot enter.
  const parent = owner !== undefined && !isOpenToOthers(tmpdir()) ? '/tmp' : tmpdir()
  const path = join(parent, `inorder-${name}-${randomBytes(6).toString('hex')}`)
  guardFolder(path)
  mkdirSync(path, { mode: 0o700 })
  if (owner !== undefined) chownSync(path, owner.uid, owner.gid)
  return {
    path,
    remove() {
      rmSync(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
      releaseFolder(path)
    },
  }
}
