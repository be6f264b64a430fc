import { describe, expect, it } from 'vitest'
import { gate } from '../support/gate.ts'
import { mortalOutbox } from '../support/mortal-outbox.ts'
import { relayStand } from '../support/relay-stand.ts'
import { testPublisher } from '../support/test-publisher.ts'

describe('stop', () => {
  it('resolves although an acknowledged row stays locked by somebody else', async () => {
    const entered = gate()
    const release = gate()
    await using stand = await relayStand(async () => {
      entered.open()
      await release.opened
      return undefined
    })
    await stand.enqueue({ payload: 'x' })
    const relay = stand.relay()
    await relay.start()
    await entered.opened
    const locker = await stand.pool.connect()
    await locker.query('begin')
    await locker.query('select 1 from outbox.events for update')
    const stopping = relay.stop({ graceMs: 50 })
    release.open()
    await stopping
    // The lock is still there.
    expect(relay.health().state).toBe('stopped')
    await locker.query('rollback')
    locker.release()
  })

  it('during a start stops the relay that starts, and so does the close of its outbox', async () => {
    await using stand = await relayStand()
    const [first, second] = [stand.relay(), stand.relay({ group: 'second', topics: ['other'] })]
    const starting = first.start()
    await first.stop()
    await starting
    expect(first.health().state).toBe('stopped')
    const again = second.start()
    await stand.outbox.close()
    await again
    expect(second.health().state).toBe('stopped')
    expect((await stand.pool.query('select 1 from outbox.relays')).rowCount).toBe(0)
  })

  it('ends a drain that waits', async () => {
    await using stand = await relayStand(() => ({ kind: 'unavailable', cause: new Error('down') }))
    await stand.enqueue({ payload: 'x' })
    const relay = stand.relay()
    await relay.start()
    const draining = relay.drain()
    await relay.stop()
    expect(await draining).toMatchObject({ published: 0 })
  })
})

describe('drain', () => {
  it('ends at its signal while the broker is down, also when that has aborted already', async () => {
    await using stand = await relayStand(() => ({ kind: 'unavailable', cause: new Error('down') }))
    await stand.enqueue({ payload: 'x' })
    expect(await stand.relay().drain({ signal: AbortSignal.abort() })).toMatchObject({ published: 0 })
    const controller = new AbortController()
    const draining = stand.relay().drain({ signal: controller.signal })
    await stand.signal((signal) => signal.kind === 'breaker' && signal.open)
    controller.abort()
    expect(await draining).toMatchObject({ published: 0 })
  })

  it('can be asked for twice at once', async () => {
    await using stand = await relayStand()
    await stand.enqueue({ payload: 'x' })
    const relay = stand.relay()
    await Promise.all([relay.drain(), relay.drain()])
    expect(stand.delivered).toEqual(['x'])
  })

  it('waits for the lease of a relay that died', async () => {
    await using stand = await relayStand()
    const { outbox: mortal, die } = mortalOutbox(stand.pool)
    const victim = mortal.relay({ leaseMs: 900, publisher: testPublisher(() => ({ acknowledged: 0 })) })
    await victim.start()
    await die()
    await stand.enqueue({ payload: 'x' })
    await stand.relay({ leaseMs: 900 }).drain()
    expect(stand.delivered).toEqual(['x'])
    await victim.stop({ graceMs: 0 })
    await mortal.close()
  })
})
