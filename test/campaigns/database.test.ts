import { available } from '@inorder/harness'
import { describe, test } from 'vitest'
import { holds, patience, promise } from './play.ts'

test.each(['kill-postgres', 'cut-connections', 'long-transactions', 'failover'])(promise, { timeout: patience }, holds)

describe.skipIf(!available('pgbouncer'))('behind a pooler', () => {
  test.each(['pooler', 'failover-pooler'])(promise, { timeout: patience }, holds)
})
