import { OutboxError } from './errors.ts'

/** What a failed statement says about the world, decided on SQLSTATE and never on message text. */
export type SqlFault = 'connection' | 'conflict' | 'locked' | 'unprepared' | 'schema' | 'statement'

const faults: Readonly<Record<string, SqlFault>> = {
  '25006': 'connection', // read-only: the session is on a demoted primary, only a new one can help
  '57P01': 'connection',
  '57P02': 'connection',
  '57P03': 'connection',
  '57P05': 'connection',
  '40001': 'conflict',
  '40P01': 'conflict',
  '55P03': 'locked', // a lock_timeout, ours or the role's
  '26000': 'unprepared', // a pooler without prepared statements gave us another server session
  '42P05': 'unprepared',
  '3F000': 'schema',
  '42P01': 'schema',
  '42703': 'schema',
  '42883': 'schema',
}

/** Libraries that wrap the server's error keep it one or two steps inside; a longer chain is a circle. */
const deepest = 5

/**
 * The SQLSTATE of an error of the server, or of a library's error that has one inside. An error of this library is none,
 * whatever its cause is.
 */
export function sqlState(error: unknown, depth = 0): string | undefined {
  if (typeof error !== 'object' || error === null || error instanceof OutboxError || depth > deepest) return undefined
  const { code, originalCode, meta, original, driverError, cause } = error as LibraryError
  // Every SQLSTATE has a digit; EPIPE and EPERM, which a socket says, have none. P1000 to P9999 are Prisma's own.
  for (const each of [code, originalCode]) {
    if (typeof each === 'string' && /^(?=.*\d)(?!P[1-9])[0-9A-Z]{5}$/.test(each)) return each
  }
  for (const inner of [original, driverError, cause, meta?.driverAdapterError]) {
    const state = sqlState(inner, depth + 1)
    if (state !== undefined) return state
  }
  return undefined
}

/** Where the libraries put the error of the server. */
interface LibraryError {
  readonly code?: unknown
  /** Prisma, which has it at `meta.driverAdapterError.cause`. */
  readonly originalCode?: unknown
  readonly meta?: { readonly driverAdapterError?: unknown }
  /** Sequelize. */
  readonly original?: unknown
  /** TypeORM. */
  readonly driverError?: unknown
  /** Drizzle. */
  readonly cause?: unknown
}

/** An error without a SQLSTATE did not come from the server: the session is gone or unusable. */
export function sqlFault(error: unknown): SqlFault {
  const state = sqlState(error)
  if (state === undefined) return 'connection'
  const known = faults[state]
  if (known !== undefined) return known
  return /^(08|53|58|XX)/.test(state) ? 'connection' : 'statement'
}
