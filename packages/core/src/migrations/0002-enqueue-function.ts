import type { Names } from '../storage/names.ts'
import { type Migration, quoteBody } from './migration.ts'

/** How many locks the keys of an outbox share. */
const stripes = 1024

/**
 * `enqueue` for psql, triggers and other languages. The payload becomes the text bytes of the given jsonb; whoever
 * needs exact bytes inserts into the table instead. A SQL null is a tombstone, the jsonb value null is four bytes.
 *
 * `lock_keys` serialises writers: it holds what is given in line until the transaction ends, so that of two events of a
 * key the one with the lower id commits first. It must be a statement of its own before the INSERT, because an id is
 * taken before anything that the INSERT itself could wait for. `enqueue` calls it when the settings say so; whoever
 * inserts into the table calls it, or is not in line.
 *
 * - A key's lock is one of 1,024, by ten bits of its lane's hash, and total order has one more. 30,000 locks of their own
 *   in one transaction exhausted the lock table of a default server (53200); these are 1,025 for the whole outbox,
 *   however many transactions hold or await them. All are exclusive: an exact lock per key beside them would be one more
 *   lock for each key again, and a shared stripe below it would have to be raised to an exclusive one by a transaction
 *   that goes on to write many keys, where two that do so at once deadlock.
 * - So two keys wait for each other with a chance of 1 in 1,024, as if they were one: until the end of one transaction,
 *   and never in a circle, because a call takes its locks in ascending order.
 * - The class of the locks is the oid of the settings table: no other outbox has it, nobody's `pg_advisory_lock(bigint)`
 *   is in the same space, and a two-part lock of somebody else's clashes only if its class is that very number.
 */
export const enqueueFunction: Migration = {
  name: '0002-enqueue-function',
  transactional: true,
  statements: (names: Names) => [
    `create function ${names.quotedSchema}.lock_keys(topics text[], keys text[], orderings text[] default null)
returns void language plpgsql set search_path = pg_catalog, pg_temp as ${quoteBody(`
declare
  next_lock record;
begin
  for next_lock in
    select s.tableoid::integer class, e.stripe
    from ${names.table('settings')} s cross join lateral (
      select distinct case coalesce(n.ordering, s.ordering)
        when 'total' then ${String(stripes)}
        when 'key' then (hashtextextended(n.topic || chr(31) || n.key, 0) & ${String(stripes - 1)})::integer end stripe
      from unnest($1, $2, $3) n(topic, key, ordering)) e
    where e.stripe is not null order by e.stripe
  loop
    perform pg_advisory_xact_lock(next_lock.class, next_lock.stripe);
  end loop;
end
`)}`,
    `create function ${names.quotedSchema}.enqueue(
  topic text, key text default null, payload jsonb default null, type text default null,
  headers jsonb default '{}', available_at timestamptz default null, ordering text default null
) returns bigint language plpgsql set search_path = pg_catalog, pg_temp as ${quoteBody(`
declare
  new_id bigint;
begin
  if (select s.serialize_writes from ${names.table('settings')} s) then
    perform ${names.quotedSchema}.lock_keys(array[$1], array[$2], array[$7]);
  end if;
  insert into ${names.table('events')} (topic, key, payload, type, headers, status, available_at, ready_at, ordering)
  values ($1, $2, convert_to($3::text, 'UTF8'), $4, $5,
    case when $6 is null then 'pending' else 'scheduled' end, $6, coalesce($6, now()),
    coalesce($7, (select s.ordering from ${names.table('settings')} s)))
  returning id into new_id;
  return new_id;
end
`)}`,
  ],
}
