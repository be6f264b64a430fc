import type { Names } from '../storage/names.ts'
import type { Migration } from './migration.ts'

/**
 * Tables, and one partial index per way to reach an event.
 *
 * - `lane` reads a key's events in order; `arrival` reads what became visible since a snapshot. Its predicate is
 *   written `(status = 'pending') is true` so that the planner cannot prove that `lane` would serve as well: with the
 *   plain form it read all of `lane` and sorted it (seen with fresh statistics and 100k scheduled rows).
 * - Lanes are 64-bit hashes: a key of any length costs 8 bytes of index, and two keys that collide only wait for each
 *   other.
 * - `vacuum_truncate = off` keeps the pages that the priming step made; a plan made for a table of zero pages is a
 *   sequential scan for as long as it is cached.
 * - `audit` is only ever added to: one row per transaction of an action, so that it holds what was done even if the rest
 *   of the action never ran. The rows of one action share its `action`. `discarded` finds the action that removed an
 *   event: its detail keeps the ids.
 * - Vacuum runs by a fixed number of dead rows, because what slows a lane down is their number and not their share.
 */
export const tables: Migration = {
  name: '0001-tables',
  transactional: true,
  statements: (names: Names) => [
    `create table ${names.table('events')} (
  id bigint generated always as identity (cache 1) primary key,
  event_id uuid not null default gen_random_uuid() unique,
  topic text collate "C" not null check (octet_length(topic) between 1 and 255),
  key text collate "C" check (octet_length(key) <= 1024),
  ordering text collate "C" not null default 'key' check (ordering in ('key', 'total', 'none')),
  lane bigint not null generated always as (hashtextextended(
    case when ordering = 'total' then '' when ordering = 'none' or key is null then event_id::text else topic || chr(31) || key end, 0)) stored,
  type text collate "C" check (octet_length(type) <= 255),
  payload bytea check (octet_length(payload) <= 67108864),
  content_type text not null default 'application/json' check (octet_length(content_type) between 1 and 255),
  headers jsonb not null default '{}' check (jsonb_typeof(headers) = 'object' and not jsonb_path_exists(headers, '$.* ? (@.type() <> "string")')),
  status text collate "C" not null default 'pending' check (status in ('scheduled', 'pending', 'held', 'published', 'failed')),
  attempts integer not null default 0,
  requeues integer not null default 0,
  xid xid8 not null default pg_current_xact_id(),
  available_at timestamptz,
  ready_at timestamptz not null default now(),
  created_at timestamptz not null default now() check (isfinite(created_at)),
  published_at timestamptz,
  failed_at timestamptz,
  last_error text,
  constraint schedule check (case status
    when 'scheduled' then available_at is not null and attempts = 0
    when 'pending' then available_at is null or attempts > 0
    else available_at is null end)
) with (vacuum_truncate = off,
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 100000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000)`,
    `create index lane on ${names.table('events')} (lane, id) where status in ('pending', 'held')`,
    `create index arrival on ${names.table('events')} (xid, id) where (status = 'pending') is true`,
    `create index waiting on ${names.table('events')} (available_at, id) where available_at is not null`,
    `create index failed on ${names.table('events')} (failed_at) where status in ('failed', 'held')`,
    `create index published on ${names.table('events')} (published_at) where status = 'published'`,
    `create table ${names.table('relays')} (
  id text collate "C" primary key,
  relay_group text collate "C" not null,
  host text not null,
  pid integer not null,
  version text not null,
  started_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null,
  renewals bigint not null default 0
) with (fillfactor = 50)`,
    `create table ${names.table('group_topics')} (
  relay_group text collate "C" not null,
  topic text collate "C"
)`,
    `create unique index group_topic on ${names.table('group_topics')} (relay_group, coalesce(topic, ''))`,
    `create table ${names.table('slots')} (
  relay_group text collate "C" not null,
  slot integer not null check (slot between 0 and 255),
  owner text collate "C",
  epoch bigint not null default 0,
  released_at timestamptz,
  crashes integer not null default 0,
  suspect uuid,
  suspicions jsonb not null default '{}',
  primary key (relay_group, slot)
) with (fillfactor = 50)`,
    `create table ${names.table('holds')} (
  topic text collate "C" unique,
  lane bigint unique,
  lane_topic text,
  lane_key text,
  reason text,
  held_by text,
  held_at timestamptz not null default now(),
  constraint topic_or_lane check ((topic is null) <> (lane is null))
)`,
    `create table ${names.table('failures')} (
  event bigint not null,
  at timestamptz not null,
  requeues integer not null,
  attempt integer not null,
  relay text not null,
  outcome text not null,
  error text not null,
  primary key (event, at, attempt)
)`,
    `create table ${names.table('processed_events')} (
  consumer text collate "C" not null,
  event_id uuid not null,
  processed_at timestamptz not null default now(),
  primary key (consumer, event_id)
)`,
    `create index processed on ${names.table('processed_events')} (consumer, processed_at)`,
    `create table ${names.table('audit')} (
  id bigint generated always as identity primary key,
  action uuid not null,
  at timestamptz not null default now(),
  actor text not null,
  verb text not null,
  filter jsonb not null,
  affected bigint not null,
  detail jsonb not null default '{}'
)`,
    `create index discarded on ${names.table('audit')} using gin (detail jsonb_path_ops) where verb = 'discard'`,
    `create table ${names.table('settings')} (
  only_row boolean primary key default true check (only_row),
  version integer not null,
  ordering text collate "C" not null default 'key' check (ordering in ('key', 'total', 'none')),
  holds_version bigint not null default 0,
  serialize_writes boolean not null default false,
  hash_check bigint not null
)`,
    `insert into ${names.table('settings')} (version, hash_check) values (1, hashtextextended('inorder', 0))`,
  ],
}
