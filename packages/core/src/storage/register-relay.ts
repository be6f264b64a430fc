import type { Row, Statement } from '../contract/sql-client.ts'
import type { Names } from './names.ts'

export interface RelayIdentity {
  readonly id: string
  readonly group: string
  readonly host: string
  readonly pid: number
  readonly version: string
}

/** Held while a relay registers, so that two groups cannot both find their topics free. Transaction-scoped. */
export function registrationLock(names: Names): Statement {
  return { text: `select pg_advisory_xact_lock(hashtextextended($1, 8))`, values: [`inorder:${names.schema}`] }
}

/** Topics of other groups that have a live relay and that overlap: $1 group, $2 topics or null for all. */
export function overlapStatement(names: Names, group: string, topics: readonly string[] | null): Statement {
  return {
    text: `select distinct g.relay_group, coalesce(g.topic, 'all topics') from ${names.table('group_topics')} g
where g.relay_group <> $1 and ($2::text[] is null or g.topic is null or g.topic = any($2::text[]))
  and exists (select 1 from ${names.table('relays')} r where r.relay_group = g.relay_group and r.expires_at > clock_timestamp())`,
    values: [group, topics],
  }
}

export function readOverlap(rows: readonly Row[]): { group: string; topic: string } | undefined {
  const [row] = rows
  return row === undefined ? undefined : { group: row[0] as string, topic: row[1] as string }
}

/** Forgets dead relays, and the topics of the group unless a live relay of it still serves them. */
export function forgetDeadStatements(names: Names, group: string): readonly Statement[] {
  const relays = names.table('relays')
  return [
    { text: `delete from ${relays} where expires_at < clock_timestamp() - interval '1 day'`, values: [] },
    {
      text: `delete from ${names.table('group_topics')} where relay_group = $1
  and not exists (select 1 from ${relays} r where r.relay_group = $1 and r.expires_at > clock_timestamp())`,
      values: [group],
    },
  ]
}

/** The relay's row, its topics and the 256 slots of its group. */
export function registerStatements(
  names: Names,
  relay: RelayIdentity,
  topics: readonly string[] | null,
  leaseMs: number,
): readonly Statement[] {
  return [
    {
      text: `insert into ${names.table('relays')} (id, relay_group, host, pid, version, expires_at)
values ($1, $2, $3, $4, $5, clock_timestamp() + $6::float8 * interval '1 ms')`,
      values: [relay.id, relay.group, relay.host, relay.pid, relay.version, leaseMs],
    },
    {
      text: `insert into ${names.table('group_topics')} (relay_group, topic) select $1, topic from unnest($2::text[]) topic on conflict do nothing`,
      values: [relay.group, topics ?? [null]],
    },
    {
      text: `insert into ${names.table('slots')} (relay_group, slot) select $1, slot from generate_series(0, 255) slot on conflict do nothing`,
      values: [relay.group],
    },
  ]
}

/** Ends a relay's registration: gives all its slots back and removes its row. $1 relay. */
export function deregisterStatement(names: Names, relay: string): Statement {
  return {
    text: `with released as (update ${names.table('slots')} set owner = null, released_at = clock_timestamp() where owner = $1)
delete from ${names.table('relays')} where id = $1`,
    values: [relay],
  }
}
