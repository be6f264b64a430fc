import { createOutbox, fromPg } from '@inorder/core'
import { available, freshDatabase, type OwnServer } from '@inorder/harness'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import {
  type Destination,
  kafkaDestination,
  rabbitMqDestination,
  redisDestination,
  sqsDestination,
} from './destinations.ts'

const keys = Array.from({ length: 10 }, (_, number) => `key-${number}`)
const rounds = 30

async function kill(server: OwnServer): Promise<() => Promise<void>> {
  await server.kill()
  return () => server.restart()
}

async function freeze(server: OwnServer): Promise<() => Promise<void>> {
  server.pause()
  return async () => server.resume()
}

/** ElasticMQ keeps everything in memory, so it is not killed. */
const brokers: [string, boolean, () => Promise<Destination>, (typeof kill)[]][] = [
  ['Redis Streams', available('redis', { own: true }), redisDestination, [kill, freeze]],
  ['Kafka', available('kafka'), kafkaDestination, [kill, freeze]],
  ['RabbitMQ', available('rabbitmq'), rabbitMqDestination, [kill, freeze]],
  ['SQS FIFO', available('elasticmq'), sqsDestination, [freeze]],
]

describe.each(brokers)('events on their way to %s', (_, present, open, faults) => {
  it.skipIf(!present).each(faults)(
    'survive an outage of the broker: none is lost or failed, each key in order, no attempt spent: %o',
    async (breakIt) => {
      const pool = new pg.Pool({ connectionString: await freshDatabase(), max: 12 })
      const outbox = createOutbox({ client: fromPg(pool) })
      await outbox.migrate()
      const { server, publisher, arrivals } = await open()
      let failures = 0
      const relay = outbox.relay({
        publisher,
        publishTimeoutMs: 3000,
        backoffCapMs: 1000,
        onSignal(signal) {
          if (signal.kind === 'breaker' ? signal.open : signal.kind === 'published' && signal.failure !== undefined)
            failures += 1
        },
      })
      await relay.start()
      const written = new Map<string, string[]>(keys.map((key) => [key, []]))
      const write = async (): Promise<void> => {
        const events = keys.map((key) => ({ topic: 'orders', key, payload: { key } }))
        const enqueued = await outbox.transaction(pool, (tx) => outbox.enqueue(tx, events))
        for (const [index, { eventId }] of enqueued.entries()) written.get(keys[index] ?? '')?.push(eventId)
      }
      const published = async (count: number): Promise<void> => {
        const sql = `select count(*)::int n from outbox.events where status = 'published'`
        await expect
          .poll(async () => (await pool.query<{ n: number }>(sql)).rows[0]?.n, { timeout: 60_000 })
          .toBeGreaterThanOrEqual(count)
      }

      for (let round = 0; round < rounds / 3; round++) await write()
      await published(keys.length)
      const mend = await breakIt(server)
      for (let round = 0; round < rounds / 3; round++) await write()
      await expect.poll(() => failures, { timeout: 60_000 }).toBeGreaterThan(0)
      await mend()
      for (let round = 0; round < rounds / 3; round++) await write()
      await published(keys.length * rounds)
      await relay.stop()

      const seen = new Map<string, Set<string>>(keys.map((key) => [key, new Set()]))
      for (const { key, eventId } of await arrivals()) seen.get(key ?? '')?.add(eventId)
      for (const key of keys) expect([...(seen.get(key) ?? [])]).toEqual(written.get(key))
      const { rows } = await pool.query('select 1 from outbox.events where attempts > 0')
      expect(rows).toEqual([])
      await outbox.close()
      await pool.end()
      await server.stop()
    },
    180_000,
  )
})
