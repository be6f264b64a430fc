import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Where Debian keeps programs that are no daily tools of ordinary users, whose PATH leaves it out. */
const systemFolder = '/usr/sbin'

/** The path of an installed program, or undefined. */
export function programOnPath(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), systemFolder].filter((folder) => folder !== '')
  return folders.map((folder) => join(folder, name)).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
