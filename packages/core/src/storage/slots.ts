import type { Row, Statement } from '../contract/sql-client.ts'
import { type Names, statementName } from './names.ts'
import { readArray } from './settle.ts'

/** A slot that this relay owns. The epoch rises with each owner. */
export interface OwnedSlot {
  readonly slot: number
  readonly epoch: string
}

export interface Heartbeat {
  /** False when the lease had already expired: everything that was owned may belong to others. */
  readonly renewed: boolean
  readonly owned: readonly OwnedSlot[]
  /** How many slots each other live relay of the group owns. */
  readonly others: readonly number[]
  readonly free: number
  /** How many of the free ones nobody has taken for a whole heartbeat. */
  readonly stale: number
}

/**
 * Renews the lease and reads who owns how much. A renewal succeeds only while the lease has not expired; another relay
 * counts once it has renewed once, so that one which crashes at every start takes nothing away.
 *
 * Parameters: $1 group, $2 relay, $3 lease in ms, $4 heartbeat in ms, $5 1 to count this as a renewal. Locks: the relay's own row. Reads the 256 slots.
 */
export function heartbeatStatement(
  names: Names,
): (relay: { group: string; relay: string; leaseMs: number; beatMs: number; renewal: boolean }) => Statement {
  const relays = names.table('relays')
  const text = `with me as (
  update ${relays} set expires_at = clock_timestamp() + $3::float8 * interval '1 ms', renewals = renewals + $5::int
  where id = $2 and expires_at > clock_timestamp() returning id),
live as materialized (
  select id from ${relays} where relay_group = $1 and expires_at > clock_timestamp() and id <> $2 and renewals > 0),
s as materialized (
  select s.slot, s.epoch, s.owner, greatest(s.released_at, r.expires_at) free_since, s.owner is null or r.id is null or r.expires_at <= clock_timestamp() free
  from ${names.table('slots')} s left join ${relays} r on r.id = s.owner where s.relay_group = $1)
select exists (select 1 from me),
  (select array_agg(slot order by slot) from s where owner = $2), (select array_agg(epoch order by slot) from s where owner = $2),
  (select array_agg((select count(*) from s where s.owner = live.id)) from live),
  (select count(*) from s where free and owner is distinct from $2),
  (select count(*) from s where free and owner is distinct from $2 and coalesce(free_since, '-infinity') < clock_timestamp() - $4::float8 * interval '1 ms')`
  const name = statementName('heartbeat', text)
  return ({ group, relay, leaseMs, beatMs, renewal }) => ({
    name,
    text,
    values: [group, relay, leaseMs, beatMs, renewal ? 1 : 0],
  })
}

export function readHeartbeat(rows: readonly Row[]): Heartbeat {
  const row = rows[0] ?? []
  const epochs = readArray(row[2])
  return {
    renewed: row[0] === 't',
    owned: readArray(row[1]).map((slot, index) => ({ slot: Number(slot), epoch: epochs[index] ?? '0' })),
    others: readArray(row[3]).map(Number),
    free: Number(row[4]),
    stale: Number(row[5]),
  }
}

/**
 * Takes up to $3 slots that nobody holds, raising their epochs. Parameters: $1 group, $2 relay, $3 how many. Locks: the
 * slots it takes, skipping those that another relay is taking. A slot whose owner never released it counts as a crash.
 */
export function claimStatement(names: Names): (group: string, relay: string, slots: number) => Statement {
  const relays = names.table('relays')
  const slots = names.table('slots')
  const text = `with pick as materialized (
  select s.slot, s.owner from ${slots} s
  where s.relay_group = $1 and (s.owner is null or not exists (select 1 from ${relays} r where r.id = s.owner and r.expires_at > clock_timestamp()))
  order by s.slot limit $3 for update of s skip locked)
update ${slots} s set owner = $2, epoch = s.epoch + 1, released_at = null, crashes = s.crashes + (pick.owner is not null)::int
from pick where s.relay_group = $1 and s.slot = pick.slot
  and exists (select 1 from ${relays} r where r.id = $2 and r.expires_at > clock_timestamp())
returning s.slot, s.epoch`
  return (group, relay, count) => ({ text, values: [group, relay, count] })
}

export function readClaimed(rows: readonly Row[]): OwnedSlot[] {
  return rows.map(([slot, epoch]) => ({ slot: Number(slot), epoch: epoch as string }))
}

/** Gives slots back at once. $1 group, $2 relay, $3 slots. Locks: those rows. */
export function releaseStatement(names: Names): (group: string, relay: string, slots: readonly number[]) => Statement {
  const text = `update ${names.table('slots')} set owner = null, released_at = clock_timestamp() where relay_group = $1 and owner = $2 and slot = any($3::int[])`
  return (group, relay, slots) => ({ text, values: [group, relay, slots] })
}
