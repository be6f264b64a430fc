import { OutboxError } from './errors.ts'
import { sqlFault, sqlState } from './sql-state.ts'

/**
 * Throws an error of the database again: as it is, because retry loops look for its code, except that of an outbox that
 * is not there yet.
 *
 * @throws OutboxError SCHEMA_MISSING, SCHEMA_BEHIND
 */
export function explainSchema(cause: unknown, what: string, schema: string): never {
  if (sqlFault(cause) !== 'schema') throw cause
  const missing = sqlState(cause) === '42P01' || sqlState(cause) === '3F000'
  throw new OutboxError(
    missing ? 'SCHEMA_MISSING' : 'SCHEMA_BEHIND',
    `${what}: ${cause instanceof Error ? cause.message : String(cause)}. ${missing ? `There is no outbox in schema "${schema}" of this database` : `The outbox in schema "${schema}" is older than this code`}. Run outbox.migrate() once, or the statements of outbox.migrationSql() with your own migration tool.`,
    { cause },
  )
}
