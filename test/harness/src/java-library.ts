import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { programOnPath } from './program-on-path.ts'

/** Programs for the JVM that come from Maven Central. */
export interface JavaLibrary {
  /** Name and version: two libraries with one name would be one folder. */
  readonly name: string
  /** What Maven is to fetch with everything it needs, as `group:artifact:version`. */
  readonly artifacts: readonly string[]
}

const FETCH_TIMEOUT_MS = 10 * 60_000

/**
 * The class path of a library. Fetched once into the cache of the user, which takes 10 to 20 s and 40 MB; processes that
 * fetch at the same time each do it in a folder of their own, and the first one to be done wins.
 */
export async function javaClassPath(library: JavaLibrary): Promise<string> {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'inorder')
  const folder = join(cache, library.name)
  if (!existsSync(folder)) await fetchInto(folder, library)
  return join(folder, '*')
}

/** The path of the JVM. */
export function javaProgram(): string {
  const program = programOnPath('java')
  if (program === undefined)
    throw new Error('java is not on PATH. Install it (apt-get install default-jre-headless maven) and run again.')
  return program
}

async function fetchInto(folder: string, { name, artifacts }: JavaLibrary): Promise<void> {
  const own = `${folder}-${randomBytes(6).toString('hex')}`
  const jars = join(own, 'jars')
  await mkdir(jars, { recursive: true })
  try {
    await writeFile(join(own, 'pom.xml'), projectOf(artifacts))
    const arguments_ = [
      '-q',
      '-B',
      '-f',
      join(own, 'pom.xml'),
      'dependency:copy-dependencies',
      `-DoutputDirectory=${jars}`,
    ]
    await promisify(execFile)('mvn', arguments_, { timeout: FETCH_TIMEOUT_MS })
    await rename(jars, folder)
  } catch (cause) {
    if (!existsSync(folder)) throw new Error(`Maven could not fetch ${name}.`, { cause })
  } finally {
    await rm(own, { recursive: true, force: true })
  }
}

function projectOf(artifacts: readonly string[]): string {
  const dependencies = artifacts.map((artifact) => {
    const [group, id, version] = artifact.split(':')
    return `<dependency><groupId>${group}</groupId><artifactId>${id}</artifactId><version>${version}</version></dependency>`
  })
  return `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>local</groupId><artifactId>servers</artifactId><version>1</version>
<dependencies>${dependencies.join('')}</dependencies></project>`
}
