import { freshDatabase } from '@inorder/harness'
import { describe, expect, it } from 'vitest'
import { of, serializedOutbox, type SerializedOutbox } from '../support/serialized-outbox.ts'

const url = await freshDatabase()

describe('with serialized writes, 32 writers on a few keys', () => {
  // Each looks right after its INSERT: whatever has a lower id of its key must be committed by then.
  it.each(['read committed', 'repeatable read', 'serializable'])(
    'commit the lower id of a key always first, under %s',
    async (level) => {
      await using serialized = await serializedOutbox(url)
      const seen: { id: string; key: string; before: number }[] = []
      const writer = async (number: number): Promise<void> => {
        const client = await serialized.pool.connect()
        for (let round = 0; round < 8; round++) {
          const key = `key-${String((number + round) % 3)}`
          await client.query(`begin isolation level ${level}`)
          // The snapshot of the higher levels is taken before the wait.
          await client.query('select 1')
          const { id } = await serialized.outbox.enqueue(client, of(key))
          const { rows } = await serialized.pool.query<{ n: number }>(
            'select count(*)::int n from outbox.events where key = $1 and id < $2',
            [key, id],
          )
          if ((number + round) % 5 === 0) await client.query('rollback')
          else {
            seen.push({ id, key, before: rows[0]?.n ?? -1 })
            await client.query('commit')
          }
        }
        client.release()
      }
      await Promise.all(Array.from({ length: 32 }, (_, number) => writer(number)))
      const { rows } = await serialized.pool.query<{ id: string; before: number }>(
        'select id, (row_number() over (partition by key order by id) - 1)::int before from outbox.events',
      )
      expect(rows.length).toBe(seen.length)
      const truth = new Map(rows.map(({ id, before }) => [id, before]))
      expect(seen.filter(({ id, before }) => truth.get(id) !== before)).toEqual([])
    },
  )
})

describe.each(['repeatable read', 'serializable'])('under %s, a writer that waited', (level) => {
  it('is behind the one before it, though its own reads may be older', async () => {
    await using serialized = await serializedOutbox(url)
    const { outbox, payloads } = serialized
    const [first, second] = [await serialized.begin(level), await serialized.begin(level)]
    await second.query('select 1')
    await outbox.enqueue(first, of('a', 'first'))
    const enqueued = outbox.enqueue(second, of('a', 'second'))
    await serialized.waits(second)
    await first.query('commit')
    await enqueued
    const { rows } = await second.query(`select 1 from outbox.events where payload = 'first'`)
    expect(rows).toEqual([])
    await second.query('commit')
    expect(await payloads()).toEqual(['first', 'second'])
  })
})

describe('two transactions with the same keys in opposite order', () => {
  it('never deadlock when each names them in one call', async () => {
    await using serialized = await serializedOutbox(url)
    const rounds = async (events: ReturnType<typeof of>[]): Promise<void> => {
      for (let round = 0; round < 200; round++)
        await serialized.outbox.transaction(serialized.pool, (tx) => serialized.outbox.enqueue(tx, events))
    }
    await Promise.all([rounds([of('a'), of('b')]), rounds([of('b'), of('a')])])
    expect(await serialized.payloads()).toHaveLength(800)
  })

  it('deadlock in separate calls; one gets 40P01 as it is, leaves no event, and succeeds when it tries again', async () => {
    await using serialized = await serializedOutbox(url)
    const { outbox } = serialized
    const [first, second] = [await serialized.begin(), await serialized.begin()]
    await outbox.enqueue(first, of('a', 'first a'))
    await outbox.enqueue(second, of('b', 'second b'))
    const crossing = [outbox.enqueue(first, of('b', 'first b')), outbox.enqueue(second, of('a', 'second a'))]
    const outcomes = await Promise.allSettled(crossing)
    const failures = outcomes.filter((outcome) => outcome.status === 'rejected')
    expect(failures).toHaveLength(1)
    expect(failures[0]?.reason).toMatchObject({ code: '40P01', name: 'error' })
    const [winner, loser] = outcomes[0]?.status === 'rejected' ? ['second', 'first'] : ['first', 'second']
    for (const client of [first, second]) await client.query('commit')
    expect((await serialized.payloads()).toSorted()).toEqual([`${winner} a`, `${winner} b`])
    await again(serialized, loser)
    expect(await serialized.payloads()).toHaveLength(4)
  })
})

async function again({ outbox, pool }: SerializedOutbox, who: string): Promise<void> {
  await outbox.transaction(pool, (tx) => outbox.enqueue(tx, [of('a', `${who} a`), of('b', `${who} b`)]))
}
