import { expect, it } from 'vitest'
import type { RelaySignal } from '../../src/contract/signals.ts'
import { aroundStatements, purposeOf } from '../support/around-statements.ts'
import { gate } from '../support/gate.ts'
import { relayStand } from '../support/relay-stand.ts'

it('drain does not end before slots are read that the relay gained while an empty find was on its way', async () => {
  const [asked, answer] = [gate(), gate()]
  let holding = false
  await using stand = await relayStand(undefined, {}, (client) =>
    aroundStatements(client, async (statement, run) => {
      const found = await run()
      if (!holding || purposeOf(statement) !== 'find') return found
      asked.open()
      await answer.opened
      return found
    }),
  )
  // Half of the slots belong to a relay that is alive, as far as the database knows.
  await stand.pool.query(
    "insert into outbox.relays (id, relay_group, host, pid, version, expires_at, renewals) values ('other', 'default', 'h', 1, '0', now() + interval '1 h', 1)",
  )
  await stand.pool.query(
    "insert into outbox.slots (relay_group, slot, owner) select 'default', slot, case when slot > 127 then 'other' end from generate_series(0, 255) slot",
  )
  const payloads = Array.from({ length: 40 }, (_, n) => String(n))
  await stand.enqueue(...payloads.map((payload) => ({ key: payload, payload })))
  await using relay = stand.relay({ leaseMs: 900 })
  await relay.start()
  const draining = relay.drain()
  await stand.signal((signal) => signal.kind === 'settled' && signal.published > 0)
  await stand.signal(() => stand.signals.at(-1)?.kind === 'idle')
  expect(stand.delivered.length).toBeLessThan(40)
  holding = true
  await asked.opened
  await stand.pool.query("delete from outbox.relays where id = 'other'")
  await stand.signal((signal) => isAll(signal))
  holding = false
  answer.open()
  await draining
  expect([...stand.delivered].sort()).toEqual(payloads.sort())
})

function isAll(signal: RelaySignal): boolean {
  return signal.kind === 'slots' && signal.owned === 256
}
