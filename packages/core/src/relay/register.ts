import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { hostname } from 'node:os'
import { OutboxError } from '../contract/errors.ts'
import type { Names } from '../storage/names.ts'
import {
  deregisterStatement,
  forgetDeadStatements,
  overlapStatement,
  readOverlap,
  registerStatements,
  registrationLock,
} from '../storage/register-relay.ts'
import type { Session } from './session.ts'

const { version } = createRequire(import.meta.url)('../../package.json') as { version: string }

export interface Registration {
  readonly names: Names
  readonly group: string
  readonly topics: readonly string[] | null
  readonly leaseMs: number
}

/** Writes this relay down, in one transaction with the check that no other group serves the same topics. */
export async function registerRelay(
  session: Session,
  { names, group, topics, leaseMs }: Registration,
): Promise<string> {
  const id = `${hostname()}:${String(process.pid)}:${randomUUID().slice(0, 8)}`
  // READ COMMITTED whatever the default is: an older snapshot than the lock would not see who registered meanwhile.
  await session.run({ text: 'begin isolation level read committed', values: [] })
  const { generation } = session
  try {
    await session.run(registrationLock(names))
    const overlap = readOverlap((await session.run(overlapStatement(names, group, topics))).rows)
    if (overlap !== undefined) {
      throw new OutboxError(
        'TOPICS_OVERLAP',
        `The relay group '${group}' cannot start: the group '${overlap.group}' already publishes ${overlap.topic}, and an event must have one publisher. Give the groups separate topics, or use the same group name.`,
      )
    }
    for (const statement of forgetDeadStatements(names, group)) await session.run(statement)
    for (const statement of registerStatements(
      names,
      { id, group, host: hostname(), pid: process.pid, version },
      topics,
      leaseMs,
    )) {
      await session.run(statement)
    }
    await session.run({ text: 'commit', values: [] })
    if (session.generation !== generation)
      throw new OutboxError('DATABASE_UNREACHABLE', 'The connection was lost while the relay registered.')
    return id
  } catch (error) {
    await session.run({ text: 'rollback', values: [] }).catch(() => session.drop())
    // Statements behind a lost connection ran outside the transaction, or nobody knows whether it was committed: what
    // they left would keep other groups away for a lease.
    if (session.generation !== generation) await session.run(deregisterStatement(names, id)).catch(() => session.drop())
    throw error
  }
}
