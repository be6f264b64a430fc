import type { Names } from '../storage/names.ts'
import type { Migration } from './migration.ts'

/**
 * Gives the empty table pages, so that no statement is ever planned on zero pages: such a plan is a sequential scan that
 * a session keeps (an idle find took 1,200 ms at 500k rows). The rows are never visible to anyone, use no number of the
 * id sequence, and the table keeps its pages because it is never truncated.
 *
 * Rows of 1.5 kB, so that they make 200 pages: on 20 pages PostgreSQL 14 still found reading all of them cheaper than ten
 * look-ups by id, and kept that plan for settle.
 *
 * Their ids are below all others, so that the pages they leave in the primary key lie where no id is added. From then on
 * the table refuses ids below 1: they are read from there on, and an event before it would never be found.
 */
export const prime: Migration = {
  name: '0003-prime',
  transactional: true,
  statements: (names: Names) => [
    `insert into ${names.table('events')} (id, topic, key, payload) overriding system value
select -number, 'prime', number::text, convert_to(repeat('x', 1500), 'UTF8') from generate_series(1, 1000) number`,
    `delete from ${names.table('events')} where id < 0`,
    `alter table ${names.table('events')} add constraint id_above_zero check (id > 0)`,
  ],
}
