import { describe, it } from 'vitest'
import { fromPg } from '../../../src/clients/from-pg.ts'
import { createOutbox } from '../../../src/outbox.ts'
import { aroundStatements, purposeOf } from '../../support/around-statements.ts'
import { gate } from '../../support/gate.ts'
import { relayStand } from '../../support/relay-stand.ts'
import { testPublisher } from '../../support/test-publisher.ts'

const lease = { leaseMs: 900, sweepIntervalMs: 3_600_000 }

describe('a relay that lost its slots while the broker had an event of it', () => {
  it('may see it acknowledged after its successor saw it rejected: the key goes on all the same', async () => {
    const [entered, answered, cutOff] = [gate(), gate(), gate()]
    let isCutOff = false
    await using stand = await relayStand((event) =>
      event.headers['poison'] === 'true' && event.attempt === 1
        ? { kind: 'rejected', cause: new Error('not now'), retryAfterMs: 3_600_000 }
        : undefined,
    )
    // A relay that cannot renew its lease, as behind a broken network, with a broker that takes its time.
    const outbox = createOutbox({
      client: aroundStatements(fromPg(stand.pool), async (statement, run) => {
        if (isCutOff && purposeOf(statement) === 'heartbeat') await cutOff.opened
        return run()
      }),
    })
    const settled = gate()
    const stalled = outbox.relay({
      ...lease,
      publisher: testPublisher(async (run) => {
        entered.open()
        await answered.opened
        return { acknowledged: run.length }
      }),
      onSignal: ({ kind }) => {
        if (kind === 'settled') settled.open()
      },
    })
    await stalled.start()
    await stand.enqueue({ payload: 'first', headers: { poison: true } })
    await entered.opened
    isCutOff = true
    await using successor = stand.relay(lease)
    await successor.start()
    await stand.signal((signal) => signal.kind === 'settled' && signal.counted === 1)
    await stand.enqueue({ payload: 'second' })
    const from = stand.signals.length
    await stand.signal((signal) => signal.kind === 'idle' && stand.signals.indexOf(signal) >= from)
    answered.open()
    await settled.opened
    // The retry of the first, an hour later.
    await stand.pool.query('update outbox.events set available_at = now() where available_at is not null')
    await stand.signal(() => stand.delivered.includes('second'))
    cutOff.open()
    await stalled.stop()
    await outbox.close()
  })
})
