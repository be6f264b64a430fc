import { fromPg, createOutbox, type RelaySignal } from '@inorder/core'
import { memoryPublisher } from '@inorder/relay-memory'
import { setImmediate as turn } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { createRandom, type Random } from '../../stand/random.ts'
import { openScene } from './scene.ts'

/** One row of the given states, by chance, that nobody else is changing. */
const one = (...states: string[]): string =>
  `id = (select id from outbox.events where status in ('${states.join("', '")}') order by random() limit 1 for update skip locked)`

/** What people do to rows in psql. None of it says to a relay that something was done. */
const deeds: readonly ((random: Random) => string)[] = [
  (random) =>
    `insert into outbox.events (topic, key, payload, xid) values ('orders', 'k${String(random.below(8))}', 'by hand', '${String(3 + random.below(700))}')`,
  (random) => `insert into outbox.events (topic, key, payload, id) overriding system value
values ('orders', 'k${String(random.below(8))}', 'low', ${String(1 + random.below(900))}) on conflict do nothing`,
  () =>
    `insert into outbox.events (topic, key, payload) select topic, key, 'copy' from outbox.events order by random() limit 3`,
  (random) => `update outbox.events set key = 'k${String(random.below(8))}' where ${one('pending', 'scheduled')}`,
  () => `update outbox.events set key = null where ${one('pending')}`,
  (random) => `update outbox.events set ordering = '${random.pick(['key', 'none', 'total'])}' where ${one('pending')}`,
  (random) => `update outbox.events set topic = '${random.pick(['orders', 'bills'])}' where ${one('pending')}`,
  () => `update outbox.events set payload = 'changed' where ${one('pending', 'scheduled')}`,
  () => `update outbox.events set payload = null where ${one('pending')}`,
  () => `update outbox.events set event_id = gen_random_uuid() where ${one('pending')}`,
  () => `update outbox.events set id = default where ${one('pending', 'scheduled', 'failed')}`,
  (random) =>
    `update outbox.events set attempts = ${random.pick(['0', '3', '-3'])}, available_at = null where ${one('pending')}`,
  (random) => `update outbox.events set requeues = ${random.pick(['0', '5', '2147483647'])} where ${one('pending')}`,
  (random) => `update outbox.events set xid = '${String(1 + random.below(10_000))}' where ${one('pending')}`,
  () =>
    `update outbox.events set attempts = 1, available_at = now() + random() * interval '100 ms' where ${one('pending')}`,
  () => `update outbox.events set available_at = now() where ${one('scheduled')}`,
  () => `update outbox.events set status = 'pending', available_at = null where ${one('scheduled')}`,
  () =>
    `update outbox.events set status = 'pending', failed_at = null, published_at = null where ${one('failed', 'published')}`,
  () => `update outbox.events set status = 'failed', available_at = null, failed_at = now() where ${one('pending')}`,
  () =>
    `update outbox.events set status = 'scheduled', attempts = 0, available_at = now() + interval '30 ms' where ${one('pending')}`,
  () => `update outbox.events set status = 'published', available_at = null where ${one('pending')}`,
  () => `delete from outbox.events where ${one('pending', 'scheduled', 'published', 'failed')}`,
]

describe('rows that people insert, change and delete in SQL while two relays run', () => {
  it.each([1, 2, 3])(
    'crash nothing, and every one that is left in line is delivered (seed %i)',
    async (seed) => {
      const scene = await openScene()
      await scene.pool.query('alter table outbox.events alter id restart with 1000')
      const signals: RelaySignal[] = []
      scene.broker.reject(({ eventId, attempt }) => attempt < 2 && eventId.endsWith('a'), { retryAfterMs: 5 })
      scene.broker.setLatency({ perRunMs: 1 })
      const pools = [0, 1].map(() => new pg.Pool({ connectionString: scene.url, max: 8 }))
      const outboxes = pools.map((pool) => createOutbox({ client: fromPg(pool) }))
      const relays = outboxes.map((outbox) =>
        outbox.relay({
          publisher: memoryPublisher(scene.broker),
          leaseMs: 3000,
          backoffBaseMs: 5,
          backoffCapMs: 20,
          sweepIntervalMs: 50,
          onSignal: (signal) => void signals.push(signal),
        }),
      )
      for (const relay of relays) await relay.start()

      let busy = true
      const writing = Promise.all(
        [0, 1].map(async (writer) => {
          for (let n = 0; busy; n++) {
            await scene.enqueue(
              { topic: 'orders', key: `k${String(n % 8)}`, payload: `${String(writer)}.${String(n)}` },
              ...(n % 4 === 0 ? [{ topic: 'bills', key: 'k1', payload: n, delayMs: 20 }] : []),
            )
            await turn()
          }
        }),
      )
      const changing = Promise.all(
        [0, 1].map(async (hand) => {
          const random = createRandom(seed * 10 + hand)
          const client = await scene.pool.connect()
          for (let n = 0; n < 250; n++) {
            const deed = random.pick(deeds)(random)
            await client.query(
              `do $$ begin ${deed}; exception when unique_violation or check_violation then null; end $$`,
            )
            await turn()
          }
          client.release()
        }),
      )
      await changing
      busy = false
      await writing
      const left = (): Promise<number> =>
        scene.count("select count(*) from outbox.events where status in ('pending', 'scheduled')")
      await expect.poll(left, { timeout: 30_000, interval: 100 }).toBe(0)
      for (const relay of relays) {
        await relay.drain()
        expect(relay.health()).toMatchObject({ state: 'running', live: true, lanesInFlight: 0, database: { ok: true } })
        await relay.stop()
      }
      // Whatever a relay says that it published did reach the broker, under the id that it has.
      const delivered = new Set(scene.broker.deliveries.map(({ eventId }) => eventId))
      const { rows } = await scene.pool.query<{ event_id: string }>(
        "select event_id from outbox.events where status = 'published' and published_at is not null",
      )
      expect(rows.length).toBeGreaterThan(100)
      expect(rows.filter(({ event_id }) => !delivered.has(event_id))).toEqual([])
      expect(signals.filter(({ kind }) => kind === 'fault' || kind === 'lease-lost')).toEqual([])
      await Promise.all(outboxes.map((outbox) => outbox.close()))
      await Promise.all(pools.map((pool) => pool.end()))
      await scene.close()
    },
    120_000,
  )
})
