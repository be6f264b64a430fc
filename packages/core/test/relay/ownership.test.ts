import { describe, expect, it } from 'vitest'
import type { Relay } from '../../src/relay/relay.ts'
import { mortalOutbox } from '../support/mortal-outbox.ts'
import { type RelayStand, relayStand } from '../support/relay-stand.ts'
import { testPublisher } from '../support/test-publisher.ts'

const lease = { leaseMs: 900 }

/** Resolves when these relays own all slots between them, none more than one more than another. */
async function balanced(stand: RelayStand, relays: readonly Relay[]): Promise<number[]> {
  const owned = (): number[] => relays.map((relay) => relay.health().slots)
  await stand.signal(() => {
    const counts = owned()
    return counts.reduce((sum, count) => sum + count, 0) === 256 && Math.max(...counts) - Math.min(...counts) <= 1
  })
  return owned()
}

describe('slots', () => {
  it('are shared by four relays within one slot, and a fifth gets its share', async () => {
    await using stand = await relayStand()
    const relays = Array.from({ length: 4 }, () => stand.relay(lease))
    await Promise.all(relays.map((relay) => relay.start()))
    expect(await balanced(stand, relays)).toEqual([64, 64, 64, 64])
    const fifth = stand.relay(lease)
    await fifth.start()
    await balanced(stand, [...relays, fifth])
  })

  it('of a relay that stops belong to the others', async () => {
    await using stand = await relayStand()
    const [first, second] = [stand.relay(lease), stand.relay(lease)]
    await first.start()
    await second.start()
    await balanced(stand, [first, second])
    await first.stop()
    const { rows } = await stand.pool.query<{ strangers: number }>(
      'select count(*)::int strangers from outbox.slots where owner is distinct from $1 and owner is not null',
      [second.health().relay],
    )
    expect(rows).toEqual([{ strangers: 0 }])
    await balanced(stand, [second])
  })

  it('of a relay that stops belong to the others at once, long before their next heartbeat', async () => {
    await using stand = await relayStand()
    // A heartbeat every 100 s: nothing but the word of the one that stops can bring them the slots in time.
    const leaseMs = 300_000
    const first = stand.relay({ leaseMs })
    await first.start()
    await balanced(stand, [first])
    // It listens from its first find on.
    let listening: () => void = () => undefined
    const listens = new Promise<void>((resolve) => (listening = resolve))
    const second = stand.relay({ leaseMs, onSignal: ({ kind }) => kind === 'found' && listening() })
    await second.start()
    await listens
    await first.stop()
    await balanced(stand, [second])
    await second.stop()
  })

  it('of a relay that died belong to the others once its lease is over, and nothing is lost', async () => {
    await using stand = await relayStand()
    const { outbox: mortal, die } = mortalOutbox(stand.pool)
    const victim = mortal.relay({ ...lease, publisher: testPublisher(() => new Promise(() => undefined)) })
    await victim.start()
    await stand.enqueue(...Array.from({ length: 20 }, (_, n) => ({ key: `k${String(n)}`, payload: String(n) })))
    const survivor = stand.relay(lease)
    await survivor.start()
    await balanced(stand, [victim, survivor])
    await die()
    await balanced(stand, [survivor])
    await stand.deliveries(20)
    const { rows } = await stand.pool.query<{ crashes: number }>('select sum(crashes)::int crashes from outbox.slots')
    expect(rows[0]?.crashes).toBeGreaterThan(0)
    await victim.stop({ graceMs: 0 })
    await mortal.close()
  })

  it('are not touched by a relay that could not renew its lease: it publishes nothing until it is registered again', async () => {
    await using stand = await relayStand()
    await using relay = stand.relay(lease)
    await relay.start()
    const before = relay.health().relay
    // What a pause longer than the lease looks like from outside.
    await stand.pool.query("update outbox.relays set expires_at = now() - interval '1 s'")
    await stand.signal(({ kind }) => kind === 'lease-lost')
    await stand.signal((signal) => signal.kind === 'slots' && signal.gained === 256 && relay.health().relay !== before)
    await stand.enqueue({ payload: 'x' })
    expect(await stand.deliveries(1)).toEqual(['x'])
  })

  it('let a failure that was written for a moved slot count nothing', async () => {
    await using stand = await relayStand()
    let answer: (value: { acknowledged: number; failure: { kind: 'rejected'; cause: string } }) => void = () =>
      undefined
    const called = new Promise<void>((resolve) => {
      const publisher = testPublisher(() => {
        resolve()
        return new Promise((settle) => (answer = settle))
      })
      const relay = stand.relay({ ...lease, publisher })
      void relay.start()
    })
    await stand.enqueue({ payload: 'x' })
    await called
    await stand.pool.query("update outbox.slots set owner = 'somebody else', epoch = epoch + 1")
    answer({ acknowledged: 0, failure: { kind: 'rejected', cause: 'no' } })
    await stand.signal(({ kind }) => kind === 'settled')
    const { rows } = await stand.pool.query('select attempts from outbox.events')
    expect(rows).toEqual([{ attempts: 0 }])
  })
})

describe('relay groups', () => {
  it('with separate topics publish beside each other', async () => {
    await using stand = await relayStand()
    await stand.enqueue({ topic: 'a', payload: 'a' }, { topic: 'b', payload: 'b' })
    await stand.relay({ group: 'first', topics: ['a'] }).drain()
    expect(stand.delivered).toEqual(['a'])
    await stand.relay({ group: 'second', topics: ['b'] }).drain()
    expect(stand.delivered).toEqual(['a', 'b'])
  })

  it('whose topics overlap are refused with the name of the other group', async () => {
    await using stand = await relayStand()
    await using running = stand.relay({ group: 'first', topics: ['a', 'b'] })
    await running.start()
    await expect(stand.relay({ group: 'second', topics: ['b', 'c'] }).start()).rejects.toMatchObject({
      code: 'TOPICS_OVERLAP',
      message: expect.stringContaining("'first'") as unknown,
    })
    await expect(stand.relay({ group: 'third' }).start()).rejects.toMatchObject({ code: 'TOPICS_OVERLAP' })
    await using other = stand.relay({ group: 'second', topics: ['c'] })
    await other.start()
  })
})
