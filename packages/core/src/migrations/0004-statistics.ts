import type { Names } from '../storage/names.ts'
import type { Migration } from './migration.ts'

/** Takes the dead rows of the step before out and counts pages and rows. VACUUM runs in no transaction. */
export const statistics: Migration = {
  name: '0004-statistics',
  transactional: false,
  statements: (names: Names) => [
    `vacuum (analyze) ${names.table('events')}`,
    `vacuum (analyze) ${names.table('slots')}`,
  ],
}
