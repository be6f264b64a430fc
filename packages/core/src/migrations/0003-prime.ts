import type { Names } from '../storage/names.ts'
import type { Migration } from './migration.ts'

/**
 * Gives the empty table pages, so that no statement is ever planned on zero pages: such a plan is a sequential scan that
 * a session keeps (an idle find took 1,200 ms at 500k rows). The rows are never visible to anyone, use no number of the
 * id sequence, and the table keeps its pages because it is never truncated.
 */
export const prime: Migration = {
  name: '0003-prime',
  transactional: true,
  statements: (names: Names) => [
    `insert into ${names.table('events')} (id, topic, key, payload) overriding system value
select -number, 'prime', number::text, '{}' from generate_series(1, 1000) number`,
    `delete from ${names.table('events')} where id < 0`,
  ],
}
