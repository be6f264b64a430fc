import { randomBytes } from 'node:crypto'
import type {} from './global-setup.ts'
import { createDatabase } from './postgres.ts'

/** Creates an empty database on the run's shared PostgreSQL and returns its URL. The run removes it at its end. */
export async function freshDatabase(): Promise<string> {
  // Imported when called: the demo and the benchmarks use this package too, and run without vitest.
  const { inject } = await import('vitest')
  return createDatabase(inject('postgresUrl'), `${inject('databasePrefix')}${randomBytes(6).toString('hex')}`)
}
