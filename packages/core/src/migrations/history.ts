import { tables } from './0001-tables.ts'
import { enqueueFunction } from './0002-enqueue-function.ts'
import { prime } from './0003-prime.ts'
import { statistics } from './0004-statistics.ts'
import type { Migration } from './migration.ts'

/** Every step, in the order in which they run. */
export const history: readonly Migration[] = [tables, enqueueFunction, prime, statistics]
