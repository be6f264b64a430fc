import { OutboxError, type OutboxErrorCode } from '../contract/errors.ts'
import type { SqlSession } from '../contract/sql-client.ts'
import { sqlFault } from '../contract/sql-state.ts'
import { history } from '../migrations/history.ts'
import type { Names } from '../storage/names.ts'
import {
  type Access,
  grantSql,
  type Obstacle,
  obstaclesStatement,
  policySql,
  type Privilege,
  readObstacles,
} from '../storage/schema-access.ts'
import { readSchemaState, type SchemaState, schemaStateStatement } from '../storage/schema-state.ts'

/** Version of the schema that this code needs. A newer one is fine: steps only add. */
const neededVersion = 1

export interface SchemaNeeds {
  readonly retainPublishedMs: number
}

/**
 * Refuses to run on a schema that is missing, older than this code, or whose hash function gives other values, and as a
 * role that may not do what a relay does, or would do it to the rows that row-level security leaves.
 */
export async function requireSchema(session: SqlSession, names: Names, needs: SchemaNeeds): Promise<void> {
  const obstacles = readObstacles(names, (await session.run(obstaclesStatement(names, accessesOf(needs)))).rows)
  const denied = obstacles.filter((obstacle) => obstacle.denied.length > 0)
  if (denied.length > 0) throw deniedError(names, denied)
  const hidden = obstacles.filter((obstacle) => obstacle.hidden.length > 0)
  if (hidden.length > 0) throw hiddenError(hidden)
  refuseState(names, await readState(session, names))
}

/** Everything that the statements of a relay do. */
function accessesOf({ retainPublishedMs }: SchemaNeeds): readonly Access[] {
  const forgetting: readonly Privilege[] = retainPublishedMs < Infinity ? ['DELETE'] : []
  return [
    { table: 'migrations', privileges: ['SELECT'] },
    { table: 'settings', privileges: ['SELECT'] },
    { table: 'events', privileges: ['SELECT', 'UPDATE', ...forgetting] },
    { table: 'failures', privileges: ['SELECT', 'INSERT', 'DELETE'] },
    { table: 'holds', privileges: ['SELECT'] },
    { table: 'relays', privileges: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'] },
    { table: 'group_topics', privileges: ['SELECT', 'INSERT', 'DELETE'] },
    { table: 'slots', privileges: ['SELECT', 'INSERT', 'UPDATE'] },
  ]
}

function refuseState({ schema }: Names, state: SchemaState | undefined): void {
  const remedy = 'Run outbox.migrate() once, or the statements of outbox.migrationSql() with your own migration tool.'
  if (state === undefined) {
    throw new OutboxError('SCHEMA_MISSING', `There is no outbox in schema "${schema}" of this database. ${remedy}`)
  }
  if (state.missing.length > 0) {
    throw new OutboxError(
      'SCHEMA_BEHIND',
      `The outbox in schema "${schema}" lacks the steps ${state.missing.join(', ')} that this code needs. ${remedy}`,
    )
  }
  if (state.version < neededVersion) {
    throw new OutboxError(
      'SCHEMA_BEHIND',
      `The outbox in schema "${schema}" has version ${String(state.version)}, this code needs ${String(neededVersion)}. ${remedy}`,
    )
  }
  if (!state.hashMatches) {
    throw new OutboxError(
      'SCHEMA_CHANGED',
      `hashtextextended gives other values on this server than when the outbox in schema "${schema}" was made, so a key would change its lane. Let the outbox drain on the old server first.`,
    )
  }
}

function deniedError(names: Names, obstacles: readonly Obstacle[]): OutboxError {
  const what = obstacles.map(({ table, denied }) => `${denied.join(', ')} on ${table}`).join('; ')
  return refusal(
    'SCHEMA_DENIED',
    `A relay as the role ${roleOf(obstacles)} lacks ${what}. Its owner runs: ${grantSql(names, obstacles)}`,
    obstacles.map(({ table, denied }) => ({ path: table, message: `lacks ${denied.join(', ')}` })),
  )
}

function hiddenError(obstacles: readonly Obstacle[]): OutboxError {
  const tables = obstacles.map(({ table }) => table).join(', ')
  return refusal(
    'SCHEMA_HIDDEN',
    `Row-level security of ${tables} may hide rows from the role ${roleOf(obstacles)}, and what a relay cannot see it never publishes. Give the role BYPASSRLS, or a policy for all rows; the owner runs: ${policySql(obstacles)} A restrictive policy must not apply to it.`,
    obstacles.map(({ table, hidden }) => ({ path: table, message: `may hide rows from ${hidden.join(', ')}` })),
  )
}

function refusal(code: OutboxErrorCode, message: string, problems: OutboxError['problems']): OutboxError {
  return new OutboxError(code, message, { problems })
}

function roleOf(obstacles: readonly Obstacle[]): string {
  return obstacles[0]?.role ?? ''
}

async function readState(session: SqlSession, names: Names): Promise<SchemaState | undefined> {
  const steps = history.map(({ name }) => name)
  try {
    return readSchemaState((await session.run(schemaStateStatement(names, steps))).rows)
  } catch (error) {
    if (sqlFault(error) === 'schema') return undefined
    throw error
  }
}
