import { OutboxError } from '../contract/errors.ts'
import type { SqlSession } from '../contract/sql-client.ts'
import { readServerState, serverStateStatement } from '../storage/server-state.ts'

/**
 * Refuses a session that can only read. On a replica a find succeeds: without this, one that was connected while a
 * failover was under way would go on reading there, behind the primary or cut off from it, while all else found it.
 *
 * @throws OutboxError DATABASE_UNREACHABLE
 */
export async function requireWritable(session: SqlSession): Promise<void> {
  const { readOnly, replica, place } = readServerState((await session.run(serverStateStatement)).rows)
  if (!readOnly) return
  throw new OutboxError(
    'DATABASE_UNREACHABLE',
    replica
      ? `The database ${place} is a replica: a relay writes, so connect it to the primary.`
      : `The database ${place} is read-only for this session: a relay writes, so set default_transaction_read_only to off for its role and database.`,
  )
}
