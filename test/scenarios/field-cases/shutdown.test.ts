import { describe, expect, it } from 'vitest'
import { startRelayProgram } from './relay-as-program.ts'
import { openScene, type Scene } from './scene.ts'

const minuteMs = 60_000

async function enqueueThree(scene: Scene): Promise<string[]> {
  const events = await scene.enqueue(...['a', 'b', 'c'].map((key) => ({ topic: 'orders', key, payload: key })))
  return events.map(({ eventId }) => eventId).sort()
}

const owned = `select count(*) from outbox.slots where owner is not null`

describe('a program that gets SIGTERM in the middle of publishing', () => {
  it('waits for what is in flight, writes it, gives everything back and ends by itself', async () => {
    await using scene = await openScene()
    await using program = await startRelayProgram({ databaseUrl: scene.url, graceMs: minuteMs, leaseMs: 10_000 })
    await enqueueThree(scene)
    await program.said('publish', 3)
    program.signal('SIGTERM')
    await program.said('stopping')
    await scene.enqueue({ topic: 'orders', key: 'd', payload: 'too late' })
    for (const request of program.requests) program.answer(request)
    expect(await program.end).toBe(0)
    expect(program.requests).toHaveLength(3)
    const { rows } = await scene.pool.query('select status, count(*)::int from outbox.events group by 1 order by 1')
    expect(rows).toEqual([
      { status: 'pending', count: 1 },
      { status: 'published', count: 3 },
    ])
    expect(await scene.count(owned)).toBe(0)
    expect(await scene.count('select count(*) from outbox.relays')).toBe(0)
  })

  it('leaves what does not end within the grace pending, without an attempt, for the next relay', async () => {
    await using scene = await openScene()
    await using program = await startRelayProgram({ databaseUrl: scene.url, graceMs: 100, leaseMs: 10_000 })
    const eventIds = await enqueueThree(scene)
    await program.said('publish', 3)
    program.signal('SIGTERM')
    expect(await program.end).toBe(0)
    const { rows } = await scene.pool.query('select status, attempts, requeues from outbox.events')
    expect(rows).toEqual(Array.from({ length: 3 }, () => ({ status: 'pending', attempts: 0, requeues: 0 })))
    expect(await scene.count(owned)).toBe(0)
    // Nobody has to wait for a lease: the slots were given back.
    expect((await scene.deliver()).map(({ eventId }) => eventId).sort()).toEqual(eventIds)
  })

  it('ends at once with the second one, and its events belong to the next relay when the lease is over', async () => {
    await using scene = await openScene()
    await using program = await startRelayProgram({ databaseUrl: scene.url, graceMs: minuteMs, leaseMs: 900 })
    const eventIds = await enqueueThree(scene)
    await program.said('publish', 3)
    program.signal('SIGTERM')
    await program.said('stopping')
    program.signal('SIGTERM')
    expect(await program.end).toBe(143)
    expect(await scene.count(owned)).toBeGreaterThan(0)
    await scene.relay({ leaseMs: 900 }).drain()
    expect(scene.broker.deliveries.map(({ eventId }) => eventId).sort()).toEqual(eventIds)
    expect(await scene.count('select max(attempts) from outbox.events')).toBe(0)
  })
})
