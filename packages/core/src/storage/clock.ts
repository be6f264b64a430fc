import type { Row, Statement } from '../contract/sql-client.ts'

/** The database's time, to the millisecond. No parameters, no locks, no table. */
export const clockStatement: Statement = {
  text: `select floor(extract(epoch from clock_timestamp()) * 1000)::float8`,
  values: [],
}

export function readClock(rows: readonly Row[]): Date {
  return new Date(Number(rows[0]?.[0]))
}
