import { describe, expect, it } from 'vitest'
import { relayStand } from '../support/relay-stand.ts'

// What a relay finds after others died. crash-isolation.test.ts lets them die.

describe('an event of a slot whose owners crashed', () => {
  it('is written down before it is published', async () => {
    const noted: unknown[] = []
    await using stand = await relayStand(async ({ eventId }) => {
      const { rows } = await stand.pool.query('select 1 from outbox.slots where suspect = $1', [eventId])
      noted.push(rows.length)
      return undefined
    })
    await stand.relay().drain()
    await stand.pool.query('update outbox.slots set crashes = 2')
    await stand.enqueue({ payload: '1' }, { payload: '2' }, { key: 'other', payload: '3' })
    await stand.relay().drain()
    expect([...stand.delivered].sort()).toEqual(['1', '2', '3'])
    expect(noted).toEqual([1, 1, 1])
  })

  it('is failed without another try after three crashes', async () => {
    await using stand = await relayStand()
    await stand.relay().drain()
    await stand.enqueue({ payload: 'deadly' }, { payload: 'behind it' })
    await stand.pool.query(
      `update outbox.slots set crashes = 5, suspicions = (
         select jsonb_build_object(event_id, 3) from outbox.events where payload = 'deadly')`,
    )
    await stand.relay().drain()
    expect(stand.delivered).toEqual(['behind it'])
    const { rows } = await stand.pool.query<{ error: string }>(
      "select last_error error from outbox.events where status = 'failed'",
    )
    expect(rows).toMatchObject([{ error: expect.stringMatching(/EVENT_CRASHED.* 3 crashes/) as string }])
  })
})
