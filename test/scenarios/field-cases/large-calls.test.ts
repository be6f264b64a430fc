import type { PgClient, PgPool, SqlClient } from '@inorder/core'
import { afterAll, describe, expect, it } from 'vitest'
import { json, openScene } from './scene.ts'

const scene = await openScene()
afterAll(() => scene.close())

describe('one call takes any number of events', () => {
  it('7,000 on one key, with ids and deliveries in the order of the list', async () => {
    const sequence = Array.from({ length: 7000 }, (_, index) => index + 1)
    const enqueued = await scene.enqueue(...sequence.map((seq) => ({ topic: 'bulk', key: 'one', payload: { seq } })))
    const ids = enqueued.map(({ id }) => BigInt(id))
    expect(ids).toEqual(ids.toSorted((a, b) => (a < b ? -1 : 1)))
    expect(new Set(ids).size).toBe(7000)
    const delivered = await scene.deliver()
    expect(delivered.map((delivery) => (json(delivery) as { seq: number }).seq)).toEqual(sequence)
    expect(delivered.map(({ id }) => BigInt(id))).toEqual(ids)
  })

  it('none: nothing is written, in the shape of a list', async () => {
    const before = await scene.count('select count(*) from outbox.events')
    expect(await scene.enqueue()).toEqual([])
    expect(await scene.count('select count(*) from outbox.events')).toBe(before)
  })

  it('one: an event alone gives a result alone, a list of one gives a list of one', async () => {
    const event = { topic: 'bulk', key: 'one', payload: {} }
    const [alone, list] = await scene.transaction(
      async (tx) => [await scene.outbox.enqueue(tx, event), await scene.outbox.enqueue(tx, [event])] as const,
    )
    expect(alone).toMatchObject({ duplicate: false })
    expect(list).toEqual([
      { id: expect.stringMatching(/^\d+$/) as string, eventId: expect.any(String) as string, duplicate: false },
    ])
    expect((await scene.deliver()).map(({ id }) => id)).toEqual([alone.id, list[0]?.id])
  })

  it('more than a statement has parameters: 70,000 over many keys, with every optional field', async () => {
    const own = await openScene()
    try {
      const enqueued = await own.enqueue(
        ...Array.from({ length: 70_000 }, (_, index) => ({
          topic: 'bulk',
          key: `k${String(index % 500)}`,
          payload: { index },
          type: 'filled',
          headers: { index },
          ordering: 'key' as const,
          delayMs: 3_600_000,
        })),
      )
      expect(enqueued).toHaveLength(70_000)
      expect(await own.count('select count(distinct headers) from outbox.events')).toBe(70_000)
      // In the order of the list: the id of each event is its position.
      expect(
        await own.count(
          `select count(*) from outbox.events where (headers ->> 'index')::bigint <> id - (select min(id) from outbox.events)`,
        ),
      ).toBe(0)
    } finally {
      await own.close()
    }
  })

  // All in one statement, 300 MiB failed with "Invalid string length": bytes travel as hex, in one string of 512 MiB at most.
  it('any number of bytes, in statements of at most 32 MiB that stand and fall together', async () => {
    const sizes: number[] = []
    const own = await openScene({ maxPayloadBytes: 64 * 1024 * 1024, alter: (client) => watchBytes(client, sizes) })
    try {
      const payload = Buffer.alloc(5 * 1024 * 1024, 7)
      const events = Array.from({ length: 8 }, () => ({ topic: 'bulk', key: 'large', payload }))
      const enqueued = await own.enqueue(...events)
      expect(sizes).toEqual([30 * 1024 * 1024, 10 * 1024 * 1024])
      const ids = enqueued.map(({ id }) => BigInt(id))
      expect(ids).toEqual(ids.toSorted((a, b) => (a < b ? -1 : 1)))

      // The last one is taken by another event, so what the first statement wrote is withdrawn.
      await own.transaction(async (tx) => {
        const taken = { topic: 'bulk', key: 'another', payload: 1, eventId: enqueued[0]?.eventId ?? '' }
        await expect(own.outbox.enqueue(tx, [...events, taken])).rejects.toMatchObject({
          code: 'EVENT_ID_CONFLICT',
          problems: [{ index: 8 }],
        })
      })
      expect(
        await own.count('select count(*) from outbox.events where octet_length(payload) = $1', [payload.length]),
      ).toBe(8)
    } finally {
      await own.close()
    }
  }, 120_000)
})

type Client = SqlClient<PgClient, PgPool | PgClient>

/** The same client, noting how many payload bytes each statement of an enqueue that inserts carries. */
function watchBytes(client: Client, sizes: number[]): Client {
  return {
    ...client,
    async session(tx) {
      const session = await client.session(tx)
      return {
        run(statement) {
          const bytes = statement.values.flat().filter((value) => value instanceof Uint8Array)
          if (statement.text.startsWith('insert'))
            sizes.push(bytes.reduce((sum, { byteLength }) => sum + byteLength, 0))
          return session.run(statement)
        },
      }
    },
  }
}

describe('one bad event in a list', () => {
  it('refuses the list, names every bad one with its position, and leaves the transaction usable', async () => {
    const before = await scene.count('select count(*) from outbox.events')
    await scene.transaction(async (tx) => {
      const events = Array.from({ length: 30 }, (_, index) => ({
        topic: 'bulk',
        key: 'k',
        payload: index % 2 === 0 ? { index } : { bad: 1n },
      }))
      const refusal = expect(scene.outbox.enqueue(tx, events)).rejects
      await refusal.toMatchObject({
        code: 'EVENT_INVALID',
        problems: Array.from({ length: 15 }, (_, index) => ({ index: index * 2 + 1, path: '/payload/bad' })),
        message: expect.stringMatching(/^Nothing was enqueued: event 1: \/payload\/bad .*and 5 more$/) as string,
      })
      await tx.query('insert into orders values (8001)')
    })
    expect(await scene.count('select count(*) from orders where id = 8001')).toBe(1)
    expect(await scene.count('select count(*) from outbox.events')).toBe(before)
  })

  it('is found among things that are no events at all', async () => {
    const nothing = [null, undefined, 'text', 7, [], { topics: 'x', topic: '', key: 1, payload: 1 }]
    await expect(scene.enqueue(...(nothing as never[]))).rejects.toMatchObject({
      code: 'EVENT_INVALID',
      problems: expect.arrayContaining([
        ...[0, 1, 2, 3].map((index) => expect.objectContaining({ path: '', index }) as unknown),
        expect.objectContaining({ path: '/topic', index: 4 }) as unknown,
        ...['/topics', '/topic', '/key'].map((path) => expect.objectContaining({ path, index: 5 }) as unknown),
      ]) as unknown[],
    })
  })
})
