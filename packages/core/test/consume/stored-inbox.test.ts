import { randomUUID } from 'node:crypto'
import { freshDatabase } from '@inorder/harness'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fromPg } from '../../src/clients/from-pg.ts'
import { handlerPublisher } from '../../src/consume/handler-publisher.ts'
import { createInbox } from '../../src/consume/inbox.ts'
import type { OutboxEvent } from '../../src/contract/event.ts'
import { createOutbox } from '../../src/outbox.ts'
import type { Enqueued } from '../../src/write/enqueue.ts'
import type { EventInput } from '../../src/write/validate-event.ts'
import { createWatch } from '../support/watch.ts'

const pool = new pg.Pool({ connectionString: await freshDatabase(), max: 45 })
pool.on('error', () => undefined)
const client = fromPg(pool)
const outbox = createOutbox({ client })
// What the consumer received, to be handled in its own time: an outbox whose relay runs handlers.
const stored = createOutbox({ client, schema: 'inbox' })
const inbox = createInbox({ client, schema: 'inbox' })

beforeAll(async () => {
  await outbox.migrate()
  await stored.migrate()
  await pool.query('create table effects (seq bigint generated always as identity, key text, n int)')
})
afterAll(async () => {
  await Promise.all([outbox.close(), stored.close()])
  await pool.end()
})

/** What a consumer enqueues for a message: the event as it came, under its own id. */
function received({ topic, key, type, payload, contentType, headers, eventId }: OutboxEvent): EventInput {
  return { topic, key, payload, contentType, headers, eventId, ...(type === null ? {} : { type }) }
}

const store = (event: EventInput): Promise<Enqueued> =>
  stored.transaction(pool, (tx) => stored.enqueue(tx, event, { onDuplicate: 'ignore' }))

describe('a stored inbox', () => {
  it('takes each event once and in order, and has each effect once and in order, whatever fails on the way', async () => {
    const [keys, perKey] = [8, 25]
    const { changed, until } = createWatch()
    const seen = new Map<string, number>()
    const nth = (stage: string, eventId: string): number => {
      const count = (seen.get(stage + eventId) ?? 0) + 1
      seen.set(stage + eventId, count)
      return count
    }
    // The broker and the consumer that stores, in one: some messages are lost, of some the acknowledgement is lost.
    const transport = handlerPublisher(
      {},
      {
        async otherwise(event) {
          const [count, n] = [nth('transport', event.eventId), Number(event.id) % 7]
          if (n === 0 && count === 1) throw new Error('lost before it was stored')
          await store(received(event))
          if (n === 1 && count === 1) throw new Error('lost after it was stored')
        },
      },
    )
    const handlers = handlerPublisher({
      async 'thing.counted'({ eventId, key, payload }) {
        const { n } = JSON.parse(Buffer.from(payload ?? []).toString()) as { n: number }
        const count = nth('handler', eventId)
        if (n % 5 === 0 && count <= 2) throw new Error('the handler failed before its effect')
        await outbox.transaction(pool, (tx) =>
          inbox.processOnce(tx, { consumer: 'counter', eventId }, () =>
            tx.query('insert into effects (key, n) values ($1, $2)', [key, n]),
          ),
        )
        if (n % 6 === 0 && count === 1) throw new Error('the handler failed after its effect')
        changed()
      },
    })
    const quick = { backoffBaseMs: 5, backoffCapMs: 5 }
    await using first = outbox.relay({ publisher: transport, ...quick })
    await using second = stored.relay({ publisher: handlers, ...quick, onSignal: changed })
    await Promise.all([first.start(), second.start()])
    for (let n = 0; n < perKey; n++)
      await outbox.transaction(pool, (tx) =>
        outbox.enqueue(
          tx,
          Array.from({ length: keys }, (_, key) => ({
            topic: 'things',
            type: 'thing.counted',
            key: `key-${String(key)}`,
            payload: { n },
          })),
        ),
      )
    await until(() => second.counts().published === keys * perKey || undefined)
    const { rows } = await pool.query<{ key: string; ns: number[] }>(
      'select key, array_agg(n order by seq) ns from effects group by key',
    )
    expect(rows).toHaveLength(keys)
    for (const { ns } of rows) expect(ns).toEqual(Array.from({ length: perKey }, (_, n) => n))
    const { rows: kept } = await pool.query('select count(*)::int n, sum(attempts)::int > 0 failed from inbox.events')
    expect(kept).toEqual([{ n: keys * perKey, failed: true }])
  })

  const event: EventInput = { topic: 'things', key: 'a', payload: { n: 1 } }

  it('takes one of 20 copies that arrive at once', async () => {
    const eventId = randomUUID()
    const copies = await Promise.all(Array.from({ length: 20 }, () => store({ ...event, eventId })))
    expect(copies.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
    expect(new Set(copies.map(({ id }) => id)).size).toBe(1)
  })

  it('takes what comes first under an id, and does not mind another payload under it', async () => {
    const eventId = randomUUID()
    const { id } = await store({ ...event, eventId })
    for (const other of [{ payload: 'other' }, { key: 'b' }, { topic: 'others' }, {}])
      expect(await store({ ...event, eventId, ...other })).toEqual({ id, eventId, duplicate: true })
    const { rows } = await pool.query('select payload from inbox.events where event_id = $1', [eventId])
    expect(rows).toEqual([{ payload: Buffer.from('{"n":1}') }])
    // Which is a conflict for whoever makes events, and not for whoever receives them.
    await expect(
      stored.transaction(pool, (tx) => stored.enqueue(tx, { ...event, eventId, payload: 'other' })),
    ).rejects.toMatchObject({ code: 'EVENT_ID_CONFLICT' })
  })

  it('takes the rest of a call in which some are duplicates', async () => {
    const [known, fresh] = [randomUUID(), randomUUID()]
    await store({ ...event, eventId: known })
    const written = await stored.transaction(pool, (tx) =>
      stored.enqueue(
        tx,
        [known, fresh, fresh].map((eventId) => ({ ...event, eventId, payload: 'other' })),
        {
          onDuplicate: 'ignore',
        },
      ),
    )
    expect(written.map(({ duplicate }) => duplicate)).toEqual([true, false, true])
  })

  it('refuses an unknown way to treat duplicates, and writes nothing', async () => {
    const eventId = randomUUID()
    await expect(
      stored.transaction(pool, (tx) => stored.enqueue(tx, { ...event, eventId }, { onDuplicate: 'replace' as never })),
    ).rejects.toMatchObject({ code: 'OPTIONS_INVALID' })
    expect((await pool.query('select 1 from inbox.events where event_id = $1', [eventId])).rowCount).toBe(0)
  })
})
