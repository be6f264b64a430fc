import { describe, expect, it } from 'vitest'
import { fromPg } from '../../src/clients/from-pg.ts'
import type { SqlConnection } from '../../src/contract/sql-client.ts'
import { createOutbox } from '../../src/outbox.ts'
import { gate } from '../support/gate.ts'
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
    await locker.query('rollback')
    locker.release()
    expect(await stand.states()).toEqual({ pending: 1 })
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
    const open = new Set<SqlConnection>()
    let dead = false
    const client = fromPg(stand.pool)
    const mortal = createOutbox({
      client: {
        ...client,
        async connect() {
          if (dead) throw new Error('dead')
          const connection = await client.connect()
          open.add(connection)
          return connection
        },
      },
    })
    const victim = mortal.relay({ leaseMs: 900, publisher: testPublisher(() => ({ acknowledged: 0 })) })
    await victim.start()
    dead = true
    for (const connection of open) await connection.close()
    await stand.enqueue({ payload: 'x' })
    await stand.relay({ leaseMs: 900 }).drain()
    expect(stand.delivered).toEqual(['x'])
    await victim.stop({ graceMs: 0 })
    await mortal.close()
  })
})
