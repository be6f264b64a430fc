import { readdirSync, readFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { dirname, join, relative, sep } from 'node:path'

const NOT_OURS = new Set(['node_modules', 'dist', '.git', '.turbo', '.cache', 'coverage'])
const TEXT = /\.([cm]?[jt]s|json|ya?ml|md|sql|lua|sh|html|css|txt|mmd|tla|cfg)$|\/[^./]+$|\/\.[^/]+$/

/** Every file of the repository that is ours, relative to the root, with / on every system. */
export function ownFiles(root, folder = root) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (NOT_OURS.has(entry.name)) return []
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return ownFiles(root, path)
    return entry.isFile() ? [relative(root, path).split(sep).join('/')] : []
  })
}

/** A lock file with download addresses works only where that registry can be reached. */
export function lockFileFaults(content) {
  return content.split('\n').flatMap((line, index) => {
    const address = /\btarball:|resolution:.*https?:|^\s+['"]?[^\s]*@https?:/.test(line)
    return address ? [`pnpm-lock.yaml:${index + 1}: ${line.trim()}`] : []
  })
}

export async function checkLockFile(root) {
  const faults = lockFileFaults(readFileSync(join(root, 'pnpm-lock.yaml'), 'utf8'))
  if (faults.length === 0) return ''
  return `The lock file names download addresses. Install again with the default registry.\n${faults.join('\n')}`
}

/** Paths that exist on one person's machine only, given that machine's own folders. */
export function machinePathFaults(path, content, machineFolders) {
  const folders = machineFolders.map((folder) => folder.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  const someonesHome = ['/home/[a-z][\\w.-]*', '/Users/[A-Za-z][\\w.-]*', '[A-Z]:\\\\+Users\\\\+\\w+']
  // Not within a longer path or an address: a folder named "work" inside a package is nobody's machine.
  const pattern = new RegExp(`(?<![\\w.~*}@-])(${[...folders, ...someonesHome].join('|')})(?=[/\\\\"'\`\\s),:]|$)`)
  return content
    .split('\n')
    .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : []))
}

export async function checkMachinePaths(root) {
  // The folder around the checkout too: notes and tools kept next to it are on this machine only.
  const folders = new Set([root, dirname(root), homedir()])
  for (const common of ['/', dirname(tmpdir()), tmpdir(), '/home', '/Users', '/usr', '/app', '/var', '/opt'])
    folders.delete(common)
  const faults = ownFiles(root)
    .filter((path) => TEXT.test(`/${path}`))
    .flatMap((path) => machinePathFaults(path, readFileSync(join(root, path), 'utf8'), [...folders]))
  if (faults.length === 0) return ''
  return `These lines name a folder of one machine. Use a path relative to the repository.\n${faults.join('\n')}`
}
