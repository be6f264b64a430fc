import { cp, lstat, mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative, sep } from 'node:path'
import { ownFiles } from '../../tools/text-checks.mjs'
import { type Mutant, mutate } from './mutant.ts'

/** The working tree in a folder of its own, where nothing that is changed reaches the checkout. */
export interface WorkingCopy extends AsyncDisposable {
  readonly folder: string
  /** Puts the mutant in; the function that comes back takes it out again. */
  put(mutant: Mutant): Promise<() => Promise<void>>
}

/** Copies what is ours, and links what was installed. */
export async function copyWorkingTree(root: string): Promise<WorkingCopy> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), 'inorder-mutants-'))
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true })
  try {
    const files = ownFiles(root)
    for (const file of files) await cp(join(root, file), join(folder, file))
    const packages = files.filter((file) => file.endsWith('package.json')).map((file) => dirname(file))
    for (const place of packages) await linkInstalled(root, folder, join(place, 'node_modules'))
  } catch (error) {
    await remove()
    throw error
  }
  return {
    folder,
    async put(mutant) {
      const path = join(folder, mutant.file)
      const content = await readFile(path, 'utf8')
      await writeFile(path, mutate(mutant, content))
      return () => writeFile(path, content)
    },
    [Symbol.asyncDispose]: remove,
  }
}

/**
 * Makes a folder of links. One link to the whole folder would lead from `@inorder/core` to the checkout's own sources,
 * in which there is no mutant.
 */
async function linkInstalled(root: string, folder: string, place: string): Promise<void> {
  const names = await readdir(join(root, place)).catch(() => [])
  if (names.length > 0) await mkdir(join(folder, place), { recursive: true })
  for (const name of names) {
    const entry = join(place, name)
    if (name.startsWith('@') && (await lstat(join(root, entry))).isDirectory()) await linkInstalled(root, folder, entry)
    else if (!name.startsWith('.'))
      await symlink(targetOf(root, folder, await realpath(join(root, entry))), join(folder, entry))
  }
}

/** A package of the workspace is in the copy too; any other stays where it is. */
function targetOf(root: string, folder: string, real: string): string {
  const path = relative(root, real)
  const ours = !path.startsWith('..') && !path.split(sep).includes('node_modules')
  return ours ? join(folder, path) : real
}
