import { describe, expect, it } from 'vitest'
import { fromPg } from '../../../src/clients/from-pg.ts'
import type { RelaySignal } from '../../../src/contract/signals.ts'
import { createOutbox } from '../../../src/outbox.ts'
import { aroundStatements, purposeOf } from '../../support/around-statements.ts'
import { gate } from '../../support/gate.ts'
import { mortalOutbox } from '../../support/mortal-outbox.ts'
import { pause } from '../../support/pause.ts'
import { type RelayStand, relayStand, type StandClient } from '../../support/relay-stand.ts'
import { testPublisher } from '../../support/test-publisher.ts'

const lease = { leaseMs: 900, sweepIntervalMs: 3_600_000 }

interface Sweeps {
  readonly alter: (client: StandClient) => StandClient
  /** Resolves when a sweep that is sent from now on has been answered. */
  next(): Promise<void>
}

function watchSweeps(): Sweeps {
  const waiting = new Set<() => void>()
  return {
    alter: (client) =>
      aroundStatements(client, async (statement, run) => {
        const told = purposeOf(statement) === 'sweep' ? [...waiting] : []
        const answer = await run()
        for (const tell of told) tell()
        return answer
      }),
    next: () => new Promise((resolve) => waiting.add(resolve)),
  }
}

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

describe('a relay that gains slots', () => {
  it('finds what arrived there before', async () => {
    await using stand = await relayStand()
    const { outbox: mortal, die } = mortalOutbox(stand.pool)
    const victim = mortal.relay({ ...lease, publisher: testPublisher(() => new Promise(() => undefined)) })
    await victim.start()
    await using heir = stand.relay(lease)
    await heir.start()
    await stand.signal(() => heir.health().slots === 128 && victim.health().slots === 128)
    const payloads = Array.from({ length: 20 }, (_, n) => String(n))
    await stand.enqueue(...payloads.map((payload) => ({ key: payload, payload })))
    // It has seen all of them, and passed over those that were not its own.
    await stand.signal((signal) => signal.kind === 'found' && signal.lanes > 0)
    const from = stand.signals.length
    await stand.signal((signal) => signal.kind === 'idle' && stand.signals.indexOf(signal) >= from)
    const own = stand.delivered.length
    expect([own > 0, own < 20]).toEqual([true, true])
    await die()
    expect([...(await stand.deliveries(20))].sort()).toEqual([...payloads].sort())
    await victim.stop({ graceMs: 0 })
    await mortal.close()
  })
})

describe('a relay that gets a slot back', () => {
  /** Resolves when the relay has lost all slots, has them again, and has swept them and taken the answer. */
  async function loseAndRegain(stand: RelayStand, sweeps: Sweeps): Promise<void> {
    const from = stand.signals.length
    const later = (predicate: (signal: RelaySignal) => boolean): Promise<RelaySignal> =>
      stand.signal((signal) => predicate(signal) && stand.signals.indexOf(signal) >= from)
    // What a pause longer than the lease looks like from outside.
    await stand.pool.query("update outbox.relays set expires_at = now() - interval '1 s'")
    await later((signal) => signal.kind === 'slots' && signal.gained === 256)
    await sweeps.next()
    const swept = stand.signals.length
    await stand.signal((signal) => signal.kind === 'found' && stand.signals.indexOf(signal) >= swept)
  }

  it('goes on with a key whose run was stopped by the loss', async () => {
    const publishing = pause()
    const sweeps = watchSweeps()
    await using stand = await relayStand(
      async ({ payload }) => {
        if (Buffer.from(payload ?? []).toString() === '1') await publishing.stop()
        return undefined
      },
      {},
      sweeps.alter,
    )
    await using relay = stand.relay({ ...lease, maxRun: 2, publishTimeoutMs: 30_000 })
    await relay.start()
    await stand.signal(({ kind }) => kind === 'idle')
    // One run, published by twos.
    await stand.enqueue(...['1', '2', '3', '4'].map((payload) => ({ payload })))
    await publishing.reached
    await loseAndRegain(stand, sweeps)
    publishing.goOn()
    expect(await stand.deliveries(4)).toEqual(['1', '2', '3', '4'])
  })

  it('goes on with a key that was waiting in memory meanwhile', async () => {
    const sweeps = watchSweeps()
    await using stand = await relayStand(
      (_, tries) => (tries === 1 ? { kind: 'unknown', cause: new Error('no answer'), retryAfterMs: 1500 } : undefined),
      {},
      sweeps.alter,
    )
    await using relay = stand.relay(lease)
    await relay.start()
    await stand.signal(({ kind }) => kind === 'idle')
    await stand.enqueue({ payload: '1' })
    await stand.signal(({ kind }) => kind === 'published')
    await loseAndRegain(stand, sweeps)
    expect(await stand.deliveries(1)).toEqual(['1'])
  })
})
