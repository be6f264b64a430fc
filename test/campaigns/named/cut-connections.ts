import type pg from 'pg'
import type { Campaign } from '../campaign-plan.ts'
import type { Stage } from '../stage.ts'
import { repeatedly } from '../tempo.ts'

/** Connections are ended by the server, in the middle of a statement, a transaction or a COMMIT. */
export const cutConnections: Campaign = {
  name: 'cut-connections',
  about: 'the server ends connections of relays and writers at random',
  disturb: (stage, until) => repeatedly({ random: stage.random, minMs: 20, maxMs: 300 }, until, () => cutOne(stage)),
}

/** Ends one connection. Where the server itself is gone at the moment, there is none. */
export async function cutOne({ db, random, faults }: Stage): Promise<void> {
  const rows = await connections(db)
  if (rows.length === 0) return
  const { pid, name } = random.pick(rows)
  faults.strike('connection cut', name)
  await db.query('select pg_terminate_backend($1)', [pid]).catch(() => undefined)
}

async function connections(db: pg.Pool): Promise<{ pid: number; name: string }[]> {
  try {
    const { rows } = await db.query<{ pid: number; name: string }>(
      `select pid, application_name name from pg_stat_activity
where backend_type = 'client backend' and application_name like any(array['relay-%', 'writer-%']) order by pid`,
    )
    return rows
  } catch {
    return []
  }
}
