import type { Row, Statement } from '../contract/sql-client.ts'
import { type Names, statementName } from './names.ts'
import { readArray } from './settle.ts'

/** A slot that this relay owns. The epoch rises with each owner. */
export interface OwnedSlot {
  readonly slot: number
  readonly epoch: string
  /** How many of its last owners were gone without having given it back. */
  readonly crashes: number
  /** In how many of those crashes an event was the one being published, by event id. */
  readonly suspicions: Readonly<Record<string, number>>
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
  /** Rises whenever an operator lets a topic go on. */
  readonly holdsVersion: string
  /** In how many ms the first lease of another relay runs out, unless it is renewed. */
  readonly nextExpiryMs: number
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
  select s.slot, s.epoch, s.owner, s.crashes, s.suspicions, greatest(s.released_at, r.expires_at) free_since, s.owner is null or r.id is null or r.expires_at <= clock_timestamp() free
  from ${names.table('slots')} s left join ${relays} r on r.id = s.owner where s.relay_group = $1)
select exists (select 1 from me),
  (select array_agg(slot order by slot) from s where owner = $2), (select array_agg(epoch order by slot) from s where owner = $2),
  (select array_agg((select count(*) from s where s.owner = live.id)) from live),
  (select count(*) from s where free and owner is distinct from $2),
  (select count(*) from s where free and owner is distinct from $2 and coalesce(free_since, '-infinity') < clock_timestamp() - $4::float8 * interval '1 ms'),
  (select jsonb_object_agg(slot, jsonb_build_array(crashes, suspicions)) from s where owner = $2 and crashes > 0),
  (select holds_version from ${names.table('settings')}),
  (select ((extract(epoch from min(r.expires_at)) - extract(epoch from clock_timestamp())) * 1000)::float8
   from ${relays} r where r.relay_group = $1 and r.id <> $2 and r.expires_at > clock_timestamp())`
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
  const crashed = (typeof row[6] === 'string' ? JSON.parse(row[6]) : {}) as Record<string, [number, Suspicions]>
  return {
    renewed: row[0] === 't',
    owned: readArray(row[1]).map((slot, index) => {
      const [crashes, suspicions] = crashed[slot] ?? [0, {}]
      return { slot: Number(slot), epoch: epochs[index] ?? '0', crashes, suspicions }
    }),
    others: readArray(row[3]).map(Number),
    free: Number(row[4]),
    stale: Number(row[5]),
    holdsVersion: row[7] as string,
    nextExpiryMs: typeof row[8] === 'string' ? Number(row[8]) : Infinity,
  }
}

type Suspicions = Readonly<Record<string, number>>

/**
 * Takes up to $3 slots that nobody holds, raising their epochs. Parameters: $1 group, $2 relay, $3 how many, $4 the ids
 * under which this very process was registered before. Locks: the slots it takes, skipping those that another relay is
 * taking.
 *
 * A slot whose owner never released it counts as a crash, and so does the event that its owner was publishing; not when
 * the owner was this process, which evidently lives and only lost its lease.
 */
export function claimStatement(
  names: Names,
): (group: string, relay: string, slots: number, before: readonly string[]) => Statement {
  const relays = names.table('relays')
  const slots = names.table('slots')
  const text = `with pick as materialized (
  select s.slot, s.owner is not null and s.owner <> all($4::text[]) crashed from ${slots} s
  where s.relay_group = $1 and (s.owner is null or not exists (select 1 from ${relays} r where r.id = s.owner and r.expires_at > clock_timestamp()))
  order by s.slot limit $3 for update of s skip locked)
update ${slots} s set owner = $2, epoch = s.epoch + 1, released_at = null, suspect = null, crashes = s.crashes + pick.crashed::int,
  suspicions = case when pick.crashed and s.suspect is not null
    then s.suspicions || jsonb_build_object(s.suspect, coalesce((s.suspicions ->> s.suspect::text)::int, 0) + 1) else s.suspicions end
from pick where s.relay_group = $1 and s.slot = pick.slot
  and exists (select 1 from ${relays} r where r.id = $2 and r.expires_at > clock_timestamp())
returning s.slot, s.epoch, s.crashes, s.suspicions`
  return (group, relay, count, before) => ({ text, values: [group, relay, count, before] })
}

export function readClaimed(rows: readonly Row[]): OwnedSlot[] {
  return rows.map(([slot, epoch, crashes, suspicions]) => ({
    slot: Number(slot),
    epoch: epoch as string,
    crashes: Number(crashes),
    suspicions: JSON.parse(suspicions as string) as Suspicions,
  }))
}

/** Forgets the crashes of slots that were owned for a whole lease since. $1 group, $2 relay, $3 slots. Locks: those rows. */
export function forgiveStatement(names: Names): (group: string, relay: string, slots: readonly number[]) => Statement {
  const text = `update ${names.table('slots')} set crashes = 0, suspicions = '{}' where relay_group = $1 and owner = $2 and slot = any($3::int[])`
  return (group, relay, slots) => ({ text, values: [group, relay, slots] })
}

/** What a slot is about to publish, or has come through. */
export interface SuspectEntry {
  readonly slot: number
  readonly epoch: string
  /** The event that is published next; absent when there is none. */
  readonly suspect?: string
  /** The event that was published, or answered for, without harm. */
  readonly cleared?: string
}

/**
 * Writes down which event each slot is publishing, before it does. Parameters: $1 group, $2 relay, then one entry per
 * slot: $3 slots, $4 epochs, $5 events, $6 events that came through. Locks: those rows. Returns the slots that are still
 * owned under their epochs; in any other nothing may be published.
 */
export function suspectStatement(
  names: Names,
): (group: string, relay: string, entries: readonly SuspectEntry[]) => Statement {
  const text = `update ${names.table('slots')} s set suspect = x.suspect, suspicions = s.suspicions - coalesce(x.cleared, '')
from unnest($3::int[], $4::bigint[], $5::uuid[], $6::text[]) x(slot, epoch, suspect, cleared)
where s.relay_group = $1 and s.owner = $2 and s.slot = x.slot and s.epoch = x.epoch
returning s.slot`
  return (group, relay, entries) => ({
    text,
    values: [
      group,
      relay,
      entries.map(({ slot }) => slot),
      entries.map(({ epoch }) => epoch),
      entries.map(({ suspect }) => suspect ?? null),
      entries.map(({ cleared }) => cleared ?? null),
    ],
  })
}

export function readSuspected(rows: readonly Row[]): ReadonlySet<number> {
  return new Set(rows.map(([slot]) => Number(slot)))
}

/** Gives slots back at once. $1 group, $2 relay, $3 slots. Locks: those rows. */
export function releaseStatement(names: Names): (group: string, relay: string, slots: readonly number[]) => Statement {
  const text = `update ${names.table('slots')} set owner = null, released_at = clock_timestamp() where relay_group = $1 and owner = $2 and slot = any($3::int[])`
  return (group, relay, slots) => ({ text, values: [group, relay, slots] })
}
