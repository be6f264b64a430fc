import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { openScene } from './scene.ts'

const scene = await openScene()
afterAll(() => scene.close())

describe('enqueue is insert only, so it makes no other transaction fail', () => {
  it.each(['serializable', 'repeatable read'])(
    'under %s, two clients with 50 transactions each beside a running relay',
    async (level) => {
      const relay = scene.relay()
      await relay.start()
      const before = scene.broker.count
      const failures: unknown[] = []
      const client = async (writer: number): Promise<void> => {
        const connection = new pg.Client({ connectionString: scene.url })
        await connection.connect()
        for (let index = 0; index < 50; index++) {
          const id = await scene.count(`select coalesce(max(id), 0) + 1000 from orders`)
          try {
            await connection.query(`begin isolation level ${level}`)
            await connection.query('insert into orders values ($1)', [id + writer])
            // Half of them name an ordering, which makes the statement look at the settings too.
            const ordering = index % 2 === 0 ? {} : { ordering: 'key' as const }
            await scene.outbox.enqueue(connection, {
              topic: 'orders',
              key: `${level}-${String(writer)}`,
              payload: { id },
              ...ordering,
            })
            await connection.query('commit')
          } catch (error) {
            failures.push(error)
            await connection.query('rollback')
          }
        }
        await connection.end()
      }
      await Promise.all([client(1), client(2)])
      expect(failures).toEqual([])
      await scene.broker.until(({ count }) => count >= before + 100, { signal: AbortSignal.timeout(20_000) })
      await relay.stop()
      expect(scene.broker.count).toBe(before + 100)
      expect(await scene.count('select count(*) from outbox.events where attempts > 0')).toBe(0)
    },
  )

  it.each(['serializable', 'repeatable read'])(
    'under %s, a conflict that is real reaches the caller as it is, and its retry leaves one event',
    async (level) => {
      const eventId = randomUUID()
      const event = { topic: 'orders', key: 'a', payload: 1, eventId }
      const [first, second] = [await scene.pool.connect(), await scene.pool.connect()]
      await second.query(`begin isolation level ${level}`)
      await second.query('select count(*) from orders')
      await first.query(`begin isolation level ${level}`)
      await scene.outbox.enqueue(first, event)
      await first.query('commit')
      await expect(scene.outbox.enqueue(second, event)).rejects.toMatchObject({ code: '40001' })
      await second.query('rollback')
      await second.query(`begin isolation level ${level}`)
      expect(await scene.outbox.enqueue(second, event)).toMatchObject({ duplicate: true })
      await second.query('commit')
      first.release()
      second.release()
      expect(await scene.count('select count(*) from outbox.events where event_id = $1', [eventId])).toBe(1)
      await scene.deliver()
      expect(scene.broker.deliveries.filter((delivery) => delivery.eventId === eventId)).toHaveLength(1)
    },
  )

  it('works where every transaction of the database is serializable: migration, enqueue and relay', async () => {
    const own = await openScene()
    try {
      const database = pg.escapeIdentifier(new URL(own.url).pathname.slice(1))
      await own.pool.query(`alter database ${database} set default_transaction_isolation = 'serializable'`)
      const again = await openScene({ url: own.url })
      try {
        expect(await again.count(`select (current_setting('transaction_isolation') = 'serializable')::int`)).toBe(1)
        for (let index = 0; index < 20; index++) await again.enqueue({ topic: 'orders', key: 'a', payload: { index } })
        expect(await again.deliver()).toHaveLength(20)
      } finally {
        await again.close()
      }
    } finally {
      await own.close()
    }
  })
})
