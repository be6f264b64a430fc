import { available, type PostgresServer, startPostgres } from '@inorder/harness'
import { afterAll, beforeAll, describe } from 'vitest'
import { checkPlans } from './check-plans.ts'
import { blockedKeys, hotKey, pinned } from './regimes.ts'

// The oldest PostgreSQL that is supported: it knows no early end of a window and no searches of a list in one scan.
describe.skipIf(!available('postgres-14', { own: true }))('on PostgreSQL 14', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres({ major: 14 })
  })
  afterAll(() => server.stop())
  for (const regime of [hotKey, blockedKeys, pinned]) checkPlans(regime, () => server.createDatabase())
})
