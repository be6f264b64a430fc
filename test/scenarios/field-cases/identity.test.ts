import type { OutboxEvent } from '@inorder/core'
import { memoryPublisher } from '@inorder/relay-memory'
import { describe, expect, it } from 'vitest'
import { asking, observe } from './observed.ts'
import { startRelayProgram } from './relay-as-program.ts'
import { openScene } from './scene.ts'

const event = {
  topic: 'orders',
  key: 'order-1',
  type: 'order.placed',
  payload: Buffer.from('{"total":10.00}'),
  contentType: 'application/json',
  headers: { traceparent: '00-1-2-01', tenant: 'a' },
}

/** Everything of an event that a consumer may rely on. */
function identity({ id, eventId, topic, key, type, payload, contentType, headers, requeues, createdAt }: OutboxEvent) {
  const body = Buffer.from(payload ?? []).toString('hex')
  return { id, eventId, topic, key, type, body, contentType, headers, requeues, createdAt }
}

describe('a second copy of an event', () => {
  it('after a crash between acknowledgement and settle is the same event: id, body, key and headers', async () => {
    await using scene = await openScene()
    await using program = await startRelayProgram({ databaseUrl: scene.url, graceMs: 0, leaseMs: 900 })
    const [enqueued] = await scene.enqueue(event, { ...event, payload: 2 })
    await program.said('publish')
    // Somebody keeps the rows locked, so that the relay cannot write what the broker has.
    const locker = await scene.pool.connect()
    await locker.query('begin')
    await locker.query('select 1 from outbox.events for update')
    for (const request of program.requests) program.answer(request)
    await program.said('acknowledged')
    program.signal('SIGKILL')
    expect(await program.end).toBe('SIGKILL')
    await locker.query('rollback')
    locker.release()
    expect(await scene.count(`select count(*) from outbox.events where status = 'pending'`)).toBe(2)

    await scene.relay({ leaseMs: 900 }).drain()
    expect(scene.broker.deliveries.map(identity)).toEqual(program.published().map(identity))
    expect(scene.broker.deliveries).toHaveLength(2)
    expect(scene.broker.deliveries[0]?.eventId).toBe(enqueued?.eventId)
    // A crash is nobody's answer about the event: the number of the try is the same as well.
    expect(scene.broker.deliveries.map(({ attempt }) => attempt)).toEqual([1, 1])
  })

  it.each([
    ['a rejection', 'rejected', [1, 2]],
    ['an outage', 'unavailable', [1, 1]],
    ['an unknown outcome', 'unknown', [1, 1]],
  ] as const)('after %s differs in nothing but the number of the counted try', async (_, kind, attempts) => {
    await using scene = await openScene()
    const tries: OutboxEvent[] = []
    const { relay, until } = observe(scene, {
      backoffBaseMs: 10,
      publisher: asking(memoryPublisher(scene.broker), (run) => {
        tries.push(...run)
        return tries.length === 1 ? { acknowledged: 0, failure: { kind, cause: new Error('once') } } : undefined
      }),
    })
    await scene.enqueue(event)
    await relay.start()
    await until(() => relay.counts().published === 1)
    await relay.stop()
    const [first, second] = tries.map(identity)
    expect(tries).toHaveLength(2)
    expect(second).toEqual(first)
    expect(tries.map(({ attempt }) => attempt)).toEqual(attempts)
  })
})
