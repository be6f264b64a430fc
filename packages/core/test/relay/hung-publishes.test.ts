import { expect, it } from 'vitest'
import type { RunResult } from '../../src/contract/publisher.ts'
import { gate } from '../support/gate.ts'
import { relayStand } from '../support/relay-stand.ts'
import { testPublisher } from '../support/test-publisher.ts'

it('two publishes that hang one after the other on one connection make the relay replace it once', async () => {
  const calls: string[] = []
  const [first, second] = [gate(), gate()]
  await using stand = await relayStand()
  const publisher = testPublisher(
    ([event]) => {
      calls.push(`publish ${event?.key ?? ''}`)
      if (calls.includes('close')) return { acknowledged: 1 }
      if (event?.key === 'first') first.open()
      else second.open()
      return new Promise<RunResult>(() => undefined)
    },
    {
      close() {
        calls.push('close')
        return Promise.resolve()
      },
    },
  )
  await using relay = stand.relay({ publisher, backoffBaseMs: 20, publishTimeoutMs: 3000, publishGraceMs: 100 })
  await relay.start()
  await stand.enqueue({ key: 'first', payload: '1' })
  await first.opened
  // Its deadline is behind the first one's: by then the connection is another one already.
  await stand.enqueue({ key: 'second', payload: '2' })
  await second.opened
  await stand.signal(() => relay.counts().published === 2)
  expect(calls.filter((call) => call === 'close')).toHaveLength(1)
  expect(calls.slice(0, 3)).toEqual(['publish first', 'publish second', 'close'])
  const { rows } = await stand.pool.query('select distinct status, attempts from outbox.events')
  expect(rows).toEqual([{ status: 'published', attempts: 0 }])
})
