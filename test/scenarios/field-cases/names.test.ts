import { createOutbox, fromPg, type RelayOptions } from '@inorder/core'
import { freshDatabase, startPostgres } from '@inorder/harness'
import { memoryBroker, memoryPublisher } from '@inorder/relay-memory'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { json, openScene } from './scene.ts'

/** Every table, index, sequence, view, type and function of the database, by schema. */
const objects = `select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = relnamespace where n.nspname !~ '^pg_(toast|temp)'
union all select n.nspname, t.typname from pg_type t join pg_namespace n on n.oid = typnamespace where n.nspname !~ '^pg_(toast|temp)'
union all select n.nspname, p.proname from pg_proc p join pg_namespace n on n.oid = pronamespace`

describe('a role whose search_path is empty, and an outbox whose schema needs quotes', () => {
  it.each(['Out-Box "v2"', 'ż'.repeat(31), 'a.b;c', 'select'])(
    '%s: every verb works, and nothing is made outside of it',
    async (schema) => {
      const url = await freshDatabase()
      const owner = new pg.Pool({ connectionString: url, max: 4 })
      const pool = new pg.Pool({ connectionString: url, max: 12, options: '-c search_path=' })
      pool.on('error', () => undefined)
      const quoted = pg.escapeIdentifier(schema)
      const outside = async (): Promise<unknown> =>
        (await owner.query(`select * from (${objects}) o where nspname <> $1 order by 1, 2`, [schema])).rows
      const before = await outside()
      // Everything that an unquoted or unqualified name could be taken for.
      await owner.query('create schema decoy; create table decoy.events (id int); create table public.events (id int)')
      const decoyed = await outside()
      const outbox = createOutbox({ client: fromPg(pool), schema, serializeWrites: true })
      await outbox.migrate()
      expect(await outbox.migrate()).toEqual({ applied: [] })
      const broker = memoryBroker()
      const operator = outbox.operator({ actor: 'ops "1"' })
      const drain = (options: Partial<RelayOptions> = {}): Promise<unknown> =>
        outbox.relay({ publisher: memoryPublisher(broker), ...options }).drain()
      const enqueue = (key: string, payload: string): Promise<unknown> =>
        outbox.transaction(pool, (tx) => outbox.enqueue(tx, { topic: 'orders', key, payload }))

      await enqueue('a', 'first')
      await pool.query(`select ${quoted}.enqueue('orders', 'a', '"second"')`)
      await pool.query(`insert into ${quoted}.events (topic, key, payload) values ('orders', 'a', '"third"')`)
      await operator.hold({ topic: 'orders' }, { reason: 'look' })
      await drain()
      expect(broker.count).toBe(0)
      await operator.release({ topic: 'orders' })
      const fault = broker.reject({ key: 'bad' }, { as: 'permanent' })
      await enqueue('bad', 'requeued')
      await enqueue('bad', 'discarded')
      await drain()
      fault.end()
      expect(await operator.discard({ key: 'bad', status: 'failed', cause: 'nothing like it' })).toMatchObject({
        changed: 0,
      })
      const { rows } = await pool.query<{ id: string }>(
        `select id from ${quoted}.events where status = 'failed' order by id`,
      )
      await operator.discard({ ids: [rows[1]?.id ?? ''] })
      await operator.requeue({ key: 'bad' })
      await enqueue('later', 'rescheduled')
      await operator.reschedule({ key: 'later' }, { at: 'now' })
      await drain()
      await operator.replay({ key: 'later' })
      await drain({ group: 'a "group"' })
      expect(broker.deliveries.map(json)).toEqual([
        'first',
        'second',
        'third',
        'requeued',
        'rescheduled',
        'rescheduled',
      ])
      expect(await operator.purge({ retainPublishedMs: 0 })).toMatchObject({ deleted: 5 })
      await operator.setOrdering('total')
      expect((await operator.counts()).topics).toBeDefined()
      expect(await outside()).toEqual(decoyed)
      expect(decoyed).not.toEqual(before)
      await outbox.close()
      await Promise.all([pool.end(), owner.end()])
    },
  )
})

describe('names of more than 63 bytes', () => {
  const long = (end: string): string => 'a_very_long_name_for_an_enterprise_system_'.repeat(5) + end

  it('are told apart to their last byte: groups, topics, keys, types, and content', async () => {
    const scene = await openScene()
    const names = ['1', '2'].map(long)
    const brokers = names.map(() => memoryBroker())
    const relays = names.map((name, index) =>
      scene.outbox.relay({ publisher: memoryPublisher(brokers[index] ?? memoryBroker()), group: name, topics: [name] }),
    )
    for (const relay of relays) await relay.start()
    for (const topic of names)
      await scene.enqueue(
        ...names.map((key) => ({
          topic,
          key,
          type: long('t'),
          contentType: long('c'),
          payload: topic + key,
          headers: { [long('h')]: long('v') },
        })),
      )
    for (const [index, broker] of brokers.entries()) {
      await broker.until(({ count }) => count === 2, { signal: AbortSignal.timeout(15_000) })
      expect(new Set(broker.deliveries.map(json))).toEqual(new Set(names.map((key) => (names[index] ?? '') + key)))
      expect(broker.deliveries[0]).toMatchObject({
        topic: names[index],
        type: long('t'),
        contentType: long('c'),
        headers: { [long('h')]: long('v') },
      })
    }
    expect(await scene.count('select count(distinct lane) from outbox.events')).toBe(4)
    for (const relay of relays) await relay.stop()
    await scene.close()
  })

  it('of a group or a topic are refused above 255 bytes, and of a schema above 63, with the limit in bytes', async () => {
    const scene = await openScene()
    const refusal = (path: string, limit: number): unknown =>
      expect.objectContaining({
        code: 'OPTIONS_INVALID',
        problems: [
          expect.objectContaining({ path, message: expect.stringContaining(`${String(limit)} bytes`) as string }),
        ],
      })
    expect(() => scene.relay({ group: 'ż'.repeat(128) })).toThrow(refusal('group', 255))
    expect(() => scene.relay({ topics: ['ż'.repeat(128)] })).toThrow(refusal('topics', 255))
    for (const schema of ['x'.repeat(64), 'ż'.repeat(32)])
      expect(() => createOutbox({ client: fromPg(scene.pool), schema })).toThrow(refusal('schema', 63))
    await scene.close()
  })

  it('that differ in the last byte only are two schemas with all their indexes, which do not meet', async () => {
    const url = await freshDatabase()
    const schemas = ['1', '2'].map((end) => 'ż'.repeat(31) + end)
    // One after the other, because both make the same table of the application.
    const scenes: Awaited<ReturnType<typeof openScene>>[] = []
    for (const schema of schemas) scenes.push(await openScene({ url, schema }))
    for (const [index, scene] of scenes.entries()) {
      await scene.enqueue({ topic: 'orders', key: 'a', payload: index })
      const { rows } = await scene.pool.query<{ name: string; valid: boolean }>(
        `select i.relname name, indisvalid valid from pg_index join pg_class i on i.oid = indexrelid join pg_class t on t.oid = indrelid
where t.relnamespace = (select oid from pg_namespace where nspname = $1) and t.relname = 'events' order by 1`,
        [schemas[index]],
      )
      expect(rows).toEqual(
        ['arrival', 'events_event_id_key', 'events_pkey', 'failed', 'lane', 'published', 'waiting'].map((name) => ({
          name,
          valid: true,
        })),
      )
    }
    for (const [index, scene] of scenes.entries()) expect((await scene.deliver()).map(json)).toEqual([index])
    await Promise.all(scenes.map((scene) => scene.close()))
  })
})

describe('two outboxes in one database', () => {
  it('do not meet: neither in locks, wake-ups, purges, verbs nor registrations', async () => {
    await using server = await startPostgres()
    const url = await server.createDatabase()
    const [first, second] = [await openScene({ url, schema: 'Outbox' }), await openScene({ url, schema: 'outbox' })]
    const tables = { first: '"Outbox".events', second: 'outbox.events' }
    const [one, two] = [first.outbox.operator({ actor: 'a' }), second.outbox.operator({ actor: 'a' })]
    const fill = (table: string): string =>
      `insert into ${table} (topic, key, payload, status, published_at) select 'orders', 'a', '1', 'published', now() - interval '8 days' from generate_series(1, 300)`
    await first.pool.query(fill(tables.first))
    await first.pool.query(fill(tables.second))

    // The whole of the other one is locked by somebody: nothing of this one waits for it.
    const locker = await first.pool.connect()
    await locker.query('begin')
    const { rows } = await locker.query<{ name: string }>(
      `select c.oid::regclass::text name from pg_class c where relnamespace = '"Outbox"'::regnamespace and relkind = 'r'`,
    )
    await locker.query(`lock table ${rows.map(({ name }) => name).join(', ')} in access exclusive mode`)
    await second.outbox.migrate()
    const relay = second.relay({ leaseMs: 2000 })
    await relay.start()
    await second.enqueue({ topic: 'orders', key: 'a', payload: 'second' })
    await second.broker.until(({ count }) => count === 1, { signal: AbortSignal.timeout(15_000) })
    expect(await two.purge()).toMatchObject({ deleted: 300 })
    await two.hold({ topic: 'orders' }, { reason: 'x' })
    await two.setOrdering('total', { force: true })
    await two.discard({ topic: 'orders', status: ['pending', 'failed', 'held', 'scheduled'] })
    await relay.stop()
    await locker.query('rollback')
    locker.release()

    expect(await first.count(`select count(*) from ${tables.first}`)).toBe(300)
    await first.enqueue(
      { topic: 'orders', key: 'a', payload: 'first' },
      { topic: 'bills', key: 'a', payload: 'first too' },
    )
    expect((await first.deliver()).map(json).sort()).toEqual(['first', 'first too'])
    expect(await first.count(`select count(*) from "Outbox".settings where ordering = 'key'`)).toBe(1)
    for (const table of ['audit', 'holds']) expect(await first.count(`select count(*) from "Outbox".${table}`)).toBe(0)

    // A listener of the one hears nothing of the other.
    const heard = { first: 0, second: 0 }
    const resting = new Set<string>()
    const relays = (
      [
        ['first', first],
        ['second', second],
      ] as const
    ).map(([name, scene]) =>
      scene.relay({
        pollMinMs: 60_000,
        pollMaxMs: 60_000,
        onSignal({ kind }) {
          if (kind === 'found') heard[name] += 1
          if (kind === 'idle') resting.add(name)
        },
      }),
    )
    for (const each of relays) await each.start()
    const quiet = (): boolean => resting.size === 2 && relays.every((each) => each.health().slots === 256)
    await expect.poll(quiet, { timeout: 15_000 }).toBe(true)
    // Both wait for a minute; another process wakes the first again and again. A relay also looks of its own accord, when
    // its lease is renewed or a share of the slots arrives, so the second may have found something: not as often as that.
    const other = createOutbox({ client: fromPg(first.pool), schema: 'Outbox' })
    const before = { ...heard }
    const wakes = 20
    for (let n = 0; n < wakes; n++) {
      other.wake()
      await expect.poll(() => heard.first, { timeout: 15_000, interval: 10 }).toBeGreaterThan(before.first + n)
    }
    expect(heard.second - before.second).toBeLessThan(wakes / 2)
    expect(await one.counts()).toBeDefined()
    await other.close()
    for (const each of relays) await each.stop()
    await Promise.all([first.close(), second.close()])
  })
})
