import { randomBytes } from 'node:crypto'
import type { TestProject } from 'vitest/node'
import { dropDatabases, startPostgres } from './postgres.ts'
import { givenUrl } from './require-server.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** One server for the whole run. A test file makes its own database with `freshDatabase()`. */
    postgresUrl: string
    /** How the names of this run's databases begin. */
    databasePrefix: string
  }
}

/**
 * Gives a project's tests one PostgreSQL: the one in INORDER_TEST_POSTGRES, else a private one. The project `postgres-14`
 * always has a private one of that version.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const databasePrefix = `inorder_${randomBytes(4).toString('hex')}_`
  project.provide('databasePrefix', databasePrefix)
  const oldest = project.name === 'postgres-14'
  const given = oldest ? undefined : givenUrl('postgres')
  if (given !== undefined) {
    project.provide('postgresUrl', given)
    return () => dropDatabases(given, databasePrefix)
  }
  const server = await startPostgres(oldest ? { major: 14 } : {})
  project.provide('postgresUrl', server.url())
  return () => server.stop()
}
