import type { Row, Statement } from '../contract/sql-client.ts'
import { parseSnapshot, type Snapshot } from './find.ts'

/** A first snapshot and the server it belongs to. No parameters, no locks, no table. */
export const snapshotStatement: Statement = {
  text: 'select pg_current_snapshot()::text, extract(epoch from pg_postmaster_start_time())::text',
  values: [],
}

export function readSnapshot(rows: readonly Row[]): { snapshot: Snapshot; started: string } {
  const [row] = rows
  return { snapshot: parseSnapshot(row?.[0] as string), started: row?.[1] as string }
}
