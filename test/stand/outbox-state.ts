import type pg from 'pg'
import type { EventState } from './attempts.ts'

const statesSql = `
select e.event_id::text, e.status, e.attempts, e.last_error error, (extract(epoch from e.published_at) * 1000000)::bigint::text published_at,
  count(*) filter (where f.outcome = 'rejected')::int rejected, count(*) filter (where f.outcome = 'unknown')::int unknown
from outbox.events e left join outbox.failures f on f.event = e.id
group by e.id`

interface StateRow {
  readonly event_id: string
  readonly status: string
  readonly attempts: number
  readonly error: string | null
  readonly published_at: string | null
  readonly rejected: number
  readonly unknown: number
}

export async function readEventStates(db: pg.Pool): Promise<EventState[]> {
  const { rows } = await db.query<StateRow>(statesSql)
  return rows.map(({ event_id, published_at, ...rest }) => ({
    ...rest,
    eventId: event_id,
    publishedAt: published_at === null ? undefined : BigInt(published_at),
  }))
}

export async function countUnpublished(db: pg.Pool): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    `select count(*)::int n from outbox.events where status <> 'published'`,
  )
  return rows[0]?.n ?? 0
}

/** The time of the database, in microseconds since 1970. */
export async function databaseTime(db: pg.Pool): Promise<bigint> {
  const { rows } = await db.query<{ now: string }>(
    `select (extract(epoch from clock_timestamp()) * 1000000)::bigint::text now`,
  )
  return BigInt(rows[0]?.now ?? 0)
}

/** Resolves when the server has ended every session of a process that is gone. */
export async function sessionsEnded(db: pg.Pool, applicationName: string): Promise<void> {
  let sessions = 1
  while (sessions > 0) {
    const { rows } = await db.query<{ sessions: number }>(
      'select count(*)::int sessions from pg_stat_activity where application_name = $1',
      [applicationName],
    )
    sessions = rows[0]?.sessions ?? 0
  }
}
