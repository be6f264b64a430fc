import { OutboxError } from '../contract/errors.ts'
import type { SqlSession } from '../contract/sql-client.ts'
import { sqlFault } from '../contract/sql-state.ts'
import type { Names } from '../storage/names.ts'
import { readSchemaState, type SchemaState, schemaStateStatement } from '../storage/schema-state.ts'

/** Version of the schema that this code needs. A newer one is fine: steps only add. */
const neededVersion = 1

/** Refuses to run on a schema that is missing, older than this code, or whose hash function gives other values. */
export async function requireSchema(session: SqlSession, names: Names): Promise<void> {
  const state = await readState(session, names)
  const remedy = 'Run outbox.migrate() once, or the statements of outbox.migrationSql() with your own migration tool.'
  if (state === undefined) {
    throw new OutboxError(
      'SCHEMA_MISSING',
      `There is no outbox in schema "${names.schema}" of this database. ${remedy}`,
    )
  }
  if (state.version < neededVersion) {
    throw new OutboxError(
      'SCHEMA_BEHIND',
      `The outbox in schema "${names.schema}" has version ${String(state.version)}, this code needs ${String(neededVersion)}. ${remedy}`,
    )
  }
  if (!state.hashMatches) {
    throw new OutboxError(
      'SCHEMA_CHANGED',
      `hashtextextended gives other values on this server than when the outbox in schema "${names.schema}" was made, so a key would change its lane. Let the outbox drain on the old server first.`,
    )
  }
  if (state.readOnly) {
    throw new OutboxError(
      'DATABASE_UNREACHABLE',
      'This database is read-only, probably a replica. A relay needs the primary.',
    )
  }
}

async function readState(session: SqlSession, names: Names): Promise<SchemaState | undefined> {
  try {
    return readSchemaState((await session.run(schemaStateStatement(names))).rows)
  } catch (error) {
    if (sqlFault(error) === 'schema') return undefined
    throw error
  }
}
