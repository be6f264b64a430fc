import { available } from '@inorder/harness'
import { describe, test } from 'vitest'
import { holds, patience, promise } from './play.ts'

describe.skipIf(!available('redis', { own: true }))('with Redis', () => {
  test.each(['network', 'broker-outage'])(promise, { timeout: patience }, holds)

  describe.skipIf(!available('pgbouncer'))('behind a pooler', () => {
    test.each(['everything'])(promise, { timeout: patience }, holds)
  })
})
