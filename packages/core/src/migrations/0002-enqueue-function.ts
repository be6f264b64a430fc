import type { Names } from '../storage/names.ts'
import { type Migration, quoteBody } from './migration.ts'

/**
 * `enqueue` for psql, triggers and other languages. The payload becomes the text bytes of the given jsonb; whoever
 * needs exact bytes inserts into the table instead. A SQL null is a tombstone, the jsonb value null is four bytes.
 */
export const enqueueFunction: Migration = {
  name: '0002-enqueue-function',
  transactional: true,
  statements: (names: Names) => [
    `create function ${names.quotedSchema}.enqueue(
  topic text, key text default null, payload jsonb default null, type text default null,
  headers jsonb default '{}', available_at timestamptz default null, ordering text default null
) returns bigint language plpgsql set search_path = pg_catalog, pg_temp as ${quoteBody(`
declare
  new_id bigint;
begin
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
