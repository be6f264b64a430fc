import { randomUUID } from 'node:crypto'
import type { PgClient } from '@inorder/core'
import { afterAll, describe, expect, it } from 'vitest'
import { json, openScene } from './scene.ts'

// Event ids are UUIDs: whoever has names of another kind derives a UUID of version 5 from them.
const scene = await openScene()
afterAll(() => scene.close())

const event = (
  eventId: string,
  payload: unknown = 'x',
): { topic: string; key: string; payload: unknown; eventId: string } => ({
  topic: 'orders',
  key: 'a',
  payload,
  eventId,
})
const rows = (eventId: string): Promise<number> =>
  scene.count('select count(*) from outbox.events where event_id = $1', [eventId])

describe('an event id that is enqueued again', () => {
  it('is reported as a duplicate with the row of the first, and the transaction goes on', async () => {
    const eventId = randomUUID()
    await scene.transaction(async (tx) => {
      const first = await scene.outbox.enqueue(tx, event(eventId))
      const second = await scene.outbox.enqueue(tx, event(eventId.toUpperCase()))
      expect(first).toEqual({ id: first.id, eventId, duplicate: false })
      expect(second).toEqual({ id: first.id, eventId, duplicate: true })
      expect((await tx.query('select 1 as alive')).rows).toEqual([{ alive: 1 }])
    })
    expect((await scene.deliver()).map((delivery) => delivery.eventId)).toEqual([eventId])
    const third = await scene.enqueue(event(eventId))
    expect(third).toMatchObject([{ duplicate: true }])
    expect(await scene.deliver()).toEqual([])
  })

  it('is a duplicate within one call too, between events that are new', async () => {
    const [a, b, c] = [randomUUID(), randomUUID(), randomUUID()]
    await scene.enqueue(event(b))
    const enqueued = await scene.enqueue(event(a), event(b), event(a), event(c), event(c))
    expect(enqueued.map(({ duplicate }) => duplicate)).toEqual([false, true, true, false, true])
    expect(enqueued.map(({ eventId }) => eventId)).toEqual([a, b, a, c, c])
    expect(enqueued[2]?.id).toBe(enqueued[0]?.id)
    expect((await scene.deliver()).map(({ eventId }) => eventId)).toEqual([b, a, c])
  })

  it('with another payload, key or topic is a conflict that writes nothing and leaves the transaction usable', async () => {
    const eventId = randomUUID()
    await scene.enqueue(event(eventId))
    const others = [
      event(eventId, 'y'),
      { ...event(eventId), payload: null },
      { ...event(eventId), key: 'b' },
      { ...event(eventId), key: null },
      { ...event(eventId), topic: 'bills' },
    ]
    await scene.transaction(async (tx) => {
      for (const other of others) {
        await expect(
          scene.outbox.enqueue(tx, [event(randomUUID(), 'in front'), other, event(randomUUID(), 'behind')]),
        ).rejects.toMatchObject({
          code: 'EVENT_ID_CONFLICT',
          problems: [{ path: '/eventId', index: 1 }],
          message: expect.stringContaining(eventId) as string,
        })
      }
      await scene.outbox.enqueue(tx, event(randomUUID(), 'afterwards'))
    })
    expect((await scene.deliver()).map(json)).toEqual(['x', 'afterwards'])
  })

  it('with another payload within one call is a conflict as well', async () => {
    const eventId = randomUUID()
    await expect(scene.enqueue(event(eventId, 1), event(eventId, 2))).rejects.toMatchObject({
      code: 'EVENT_ID_CONFLICT',
    })
    expect(await rows(eventId)).toBe(0)
  })

  it('in plain SQL violates a unique constraint, as an application that writes it by hand expects', async () => {
    const sql = `insert into outbox.events (event_id, topic, key) values ($1, 'orders', 'a')`
    const eventId = randomUUID()
    await scene.pool.query(sql, [eventId])
    await expect(scene.pool.query(sql, [eventId])).rejects.toMatchObject({ code: '23505', table: 'events' })
    await scene.pool.query(`${sql} on conflict (event_id) do nothing`, [eventId])
    expect(await rows(eventId)).toBe(1)
    expect(await scene.deliver()).toHaveLength(1)
  })

  it.each(['ev-1', '', 'not-a-uuid', `${randomUUID()}0`, `{${randomUUID()}}`])(
    'must be a UUID: %s is refused before any SQL',
    async (eventId) => {
      await expect(scene.enqueue(event(eventId))).rejects.toMatchObject({
        code: 'EVENT_INVALID',
        problems: [{ path: '/eventId', index: 0 }],
      })
    },
  )
})

describe('two transactions that enqueue one event id at once', () => {
  it.each([
    ['commit', true],
    ['rollback', false],
  ])('after the %s of the first, the second owns the event or knows that it is a duplicate', async (end, duplicate) => {
    const eventId = randomUUID()
    const first = await scene.pool.connect()
    const second = await scene.pool.connect()
    await first.query('begin')
    await second.query('begin')
    await scene.outbox.enqueue(first, event(eventId))
    const { rows: pids } = await second.query<{ pid: number }>('select pg_backend_pid() pid')
    const waiting = scene.outbox.enqueue(second, event(eventId))
    await locked(pids[0]?.pid ?? 0)
    await first.query(end)
    expect(await waiting).toMatchObject({ eventId, duplicate })
    await second.query('commit')
    first.release()
    second.release()
    expect(await rows(eventId)).toBe(1)
    expect((await scene.deliver()).map((delivery) => delivery.eventId)).toEqual([eventId])
  })

  it('among 4 writers of 100 from 10 ids, leave 10 events and no answer without an id', async () => {
    const ids = Array.from({ length: 10 }, () => randomUUID())
    const writer = async (offset: number): Promise<{ id: string; eventId: string; duplicate: boolean }[]> => {
      const results = []
      for (let index = 0; index < 100; index++)
        results.push(...(await scene.enqueue(event(ids[(index + offset) % ids.length] ?? ''))))
      return results
    }
    const results = (await Promise.all([0, 3, 5, 7].map(writer))).flat()
    expect(results).toHaveLength(400)
    expect(results.filter(({ duplicate }) => !duplicate)).toHaveLength(10)
    expect(new Set(results.map(({ id, eventId }) => `${id} ${eventId}`)).size).toBe(10)
    expect((await scene.deliver()).map(({ eventId }) => eventId).sort()).toEqual(ids.toSorted())
  })
})

/** Asks the server until that session waits for a lock: it tells nobody by itself. */
async function locked(pid: number): Promise<void> {
  const signal = AbortSignal.timeout(10_000)
  while ((await scene.count('select cardinality(pg_blocking_pids($1))', [pid])) === 0) signal.throwIfAborted()
}

describe('an event id that nobody gave', () => {
  it('is new each time, grows with time, and is made by the server for plain SQL', async () => {
    const enqueued = await scene.transaction((tx: PgClient) =>
      scene.outbox.enqueue(
        tx,
        Array.from({ length: 500 }, () => ({ topic: 'orders', key: 'a', payload: 1 })),
      ),
    )
    const ids = enqueued.map(({ eventId }) => eventId)
    expect(new Set(ids).size).toBe(500)
    const milliseconds = ids.map((eventId) => Number.parseInt(eventId.replaceAll('-', '').slice(0, 12), 16))
    expect(milliseconds).toEqual(milliseconds.toSorted((a, b) => a - b))
    await scene.pool.query(`insert into outbox.events (topic, key) values ('orders', 'a'), ('orders', 'a')`)
    expect(new Set((await scene.deliver()).map(({ eventId }) => eventId)).size).toBe(502)
  })
})
