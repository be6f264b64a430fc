import { OutboxError } from '../contract/errors.ts'
import type { SqlClient, SqlConnector } from '../contract/sql-client.ts'
import { guardedSession, refuseSwallowed, type TextQuery } from './guarded-session.ts'
import { lentSessions } from './lent-sessions.ts'
import { beginner, libraryTransaction } from './library-transaction.ts'
import { type Calls, notATransaction } from './refusals.ts'

/** The part of a Prisma client that is used. */
export interface PrismaDb {
  $transaction(...given: never[]): unknown
}

/** The part of an interactive transaction of Prisma that is used. Only the client itself has `$connect`. */
export interface PrismaTransaction {
  $queryRawUnsafe(query: string, ...values: unknown[]): PromiseLike<unknown>
  readonly $connect?: never
}

/** The transaction type of a Prisma client, with its models. */
export type PrismaTransactionOf<P extends PrismaDb> = P extends {
  $transaction(work: (tx: infer T extends PrismaTransaction) => Promise<unknown>): unknown
}
  ? T
  : PrismaTransaction

const calls: Calls = {
  handle: 'the tx of an interactive transaction of Prisma',
  open: 'prisma.$transaction(async (tx) => ...)',
  db: 'prisma',
}

/**
 * Uses Prisma with a driver adapter for PostgreSQL for transactions, and another client for the sessions of migrate,
 * wake-ups and relays, since Prisma lends none: `fromPg(pool)`, with the pool of the adapter or another one.
 */
export function fromPrisma<P extends PrismaDb>(
  _prisma: P,
  connector?: SqlConnector,
): SqlClient<PrismaTransaction, PrismaDb, PrismaTransactionOf<P>> {
  return {
    name: 'prisma',
    session(tx) {
      const { $queryRawUnsafe, $connect } = (tx as Partial<Record<keyof PrismaTransaction, unknown>> | null) ?? {}
      if (typeof $queryRawUnsafe !== 'function') throw notATransaction(calls, 'something without $queryRawUnsafe')
      if ($connect !== undefined) throw notATransaction(calls, 'prisma itself, whose statements run on any connection')
      return guardedSession(textQuery(tx), calls)
    },
    transaction: (db, work) => libraryTransaction(beginner(db, '$transaction'), { work, check }),
    saysRolledBack: (error) => isExpiry(error instanceof OutboxError ? error.cause : error),
    ...lentSessions(connector, 'fromPrisma(prisma)', 'fromPrisma(prisma, fromPg(pool))'),
  }
}

function check(tx: PrismaTransaction): Promise<void> {
  return refuseSwallowed(textQuery(tx))
}

function textQuery(tx: PrismaTransaction): TextQuery {
  return async (text, values) => {
    const rows = (await tx.$queryRawUnsafe(text, ...values)) as readonly object[]
    return rows.map((row) => Object.values(row)[0] as unknown)
  }
}

/** Of the refusals that share this code, only that of an expired transaction names its timeout. */
function isExpiry(error: unknown): boolean {
  const { code, meta } = (error ?? {}) as { readonly code?: unknown; readonly meta?: { readonly timeout?: unknown } }
  return code === 'P2028' && typeof meta?.timeout === 'number'
}
