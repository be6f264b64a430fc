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

/** Every SQLSTATE has a digit; EPIPE and EPERM, which a socket says, have none. */
export function sqlState(error: unknown): string | undefined {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
  return typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/** An error without a SQLSTATE did not come from the server: the session is gone or unusable. */
export function sqlFault(error: unknown): SqlFault {
  const state = sqlState(error)
  if (state === undefined) return 'connection'
  const known = faults[state]
  if (known !== undefined) return known
  return /^(08|53|58|XX)/.test(state) ? 'connection' : 'statement'
}
