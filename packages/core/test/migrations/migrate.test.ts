import { freshDatabase, startPostgres } from '@inorder/harness'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fromPg } from '../../src/clients/from-pg.ts'
import { createOutbox } from '../../src/outbox.ts'
import { history } from '../../src/migrations/history.ts'
import { describeSchema, runByHand } from './catalog.ts'

const steps = history.map(({ name }) => name)
const transactional = history.filter((step) => step.transactional).map(({ name }) => name)
const pools: pg.Pool[] = []
afterAll(() => Promise.all(pools.map((pool) => pool.end())))

async function database(url?: string): Promise<pg.Pool> {
  const pool = new pg.Pool({ connectionString: url ?? (await freshDatabase()), max: 20 })
  pools.push(pool)
  return pool
}

const migrate = (pool: pg.Pool, schema?: string): Promise<{ applied: readonly string[] }> =>
  createOutbox({ client: fromPg(pool), ...(schema === undefined ? {} : { schema }) }).migrate()

async function numberFrom(pool: pg.Pool, sql: string): Promise<number> {
  const { rows } = await pool.query<unknown[]>({ text: sql, rowMode: 'array' })
  return Number(rows[0]?.[0])
}

describe('eight starts at once', () => {
  it.each(['read committed', 'serializable'])(
    'run each step once and leave no lock, where transactions are %s',
    async (level) => {
      const pool = await database()
      await pool.query(
        `do $$ begin execute format('alter database %I set default_transaction_isolation = %L', current_database(), '${level}'); end $$`,
      )
      // Connections that were opened before keep the old default.
      const starts = await Promise.all(
        Array.from({ length: 8 }, async () => migrate(await database(connectionString(pool)))),
      )
      const applied = starts.flatMap((start) => start.applied)
      for (const step of transactional) expect(applied.filter((each) => each === step)).toHaveLength(1)
      expect(new Set(applied)).toEqual(new Set(steps))
      expect(await migrate(pool)).toEqual({ applied: [] })
      expect(await numberFrom(pool, 'select count(*) from outbox.migrations')).toBe(steps.length)
      expect(
        await numberFrom(
          pool,
          `select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`,
        ),
      ).toBe(0)
    },
  )
})

describe('the migrated schema', () => {
  it('is the same when its printable SQL was run by hand', async () => {
    const [migrated, byHand] = [await database(), await database()]
    await migrate(migrated)
    await runByHand(byHand, createOutbox({ client: fromPg(byHand) }).migrationSql())
    const expected = await describeSchema(migrated, 'outbox')
    expect(expected.length).toBeGreaterThan(80)
    expect(await describeSchema(byHand, 'outbox')).toEqual(expected)
    expect(await migrate(byHand)).toEqual({ applied: [] })
  })

  it('holds no event, has used no id, and keeps the pages that statements are planned on', async () => {
    const pool = await database()
    await migrate(pool)
    expect(await numberFrom(pool, 'select count(*) from outbox.events')).toBe(0)
    expect(
      await numberFrom(pool, `select relpages from pg_class where oid = 'outbox.events'::regclass`),
    ).toBeGreaterThan(0)
    await pool.query('vacuum outbox.events')
    expect(await numberFrom(pool, `select pg_relation_size('outbox.events')`)).toBeGreaterThan(0)
    expect(await numberFrom(pool, `select outbox.enqueue('orders')`)).toBe(1)
  })

  it('is completed when a start died before its last step, with events already there', async () => {
    const pool = await database()
    await migrate(pool)
    await pool.query(
      `insert into outbox.events (topic, key) select 'orders', number::text from generate_series(1, 100) number`,
    )
    await pool.query('delete from outbox.migrations where name = $1', [steps.at(-1)])
    expect(await migrate(pool)).toEqual({ applied: [steps.at(-1)] })
    expect(await numberFrom(pool, 'select count(*) from outbox.events')).toBe(100)
  })

  it('is not touched by a step that fails: nothing of the step stays', async () => {
    const pool = await database()
    await pool.query('create schema outbox')
    // In the way of a table that the first step makes late.
    await pool.query('create table outbox.settings (mine int)')
    await expect(migrate(pool)).rejects.toMatchObject({ code: '42P07' })
    expect(await numberFrom(pool, `select count(*) from pg_class where oid = to_regclass('outbox.events')`)).toBe(0)
    await pool.query('drop table outbox.settings')
    expect(await migrate(pool)).toEqual({ applied: steps })
  })
})

describe('a schema of any name', () => {
  const schemas = [
    'Out-Box "v2"',
    "it's",
    'select',
    'a b.c',
    '😀ż',
    'x'.repeat(63),
    'line\nbreak; select 1 -- "',
    '$1',
    'with $inorder$ inside',
  ]

  it.each(schemas.map((schema) => [JSON.stringify(schema), schema]))(
    '%s has the same objects as the usual one, and nothing outside it is touched',
    async (_, schema) => {
      const pool = await database()
      await migrate(pool)
      const usual = await describeSchema(pool, 'outbox')
      const outside = await objectsOutside(pool, [schema])
      expect(await migrate(pool, schema)).toEqual({ applied: steps })
      expect(await describeSchema(pool, schema)).toEqual(usual)
      expect(await objectsOutside(pool, [schema])).toEqual(outside)

      const byHand = await database()
      await runByHand(byHand, createOutbox({ client: fromPg(byHand), schema }).migrationSql())
      expect(await describeSchema(byHand, schema)).toEqual(usual)
    },
  )

  it.each(['', 'x'.repeat(64), 'ż'.repeat(32), 'a\0', '\ud83d'])(
    'is refused at creation where PostgreSQL would change it: %j',
    (schema) => {
      const client = fromPg(new pg.Pool())
      expect(() => createOutbox({ client, schema })).toThrow(
        expect.objectContaining({ code: 'OPTIONS_INVALID', problems: [expect.objectContaining({ path: 'schema' })] }),
      )
    },
  )
})

describe.each([14, 18] as const)('PostgreSQL %i', (major) => {
  let server: Awaited<ReturnType<typeof startPostgres>>
  beforeAll(async () => {
    server = await startPostgres({ major })
  })
  afterAll(() => server.stop())

  it('takes the migration, the printable SQL, and events in all three ways', async () => {
    const pool = new pg.Pool({ connectionString: await server.createDatabase(), max: 6 })
    expect(Math.floor((await numberFrom(pool, `select current_setting('server_version_num')::int`)) / 10_000)).toBe(
      major,
    )
    const outbox = createOutbox({ client: fromPg(pool) })
    expect(await outbox.migrate()).toEqual({ applied: steps })
    expect(await outbox.migrate()).toEqual({ applied: [] })
    await outbox.transaction(pool, (tx) =>
      outbox.enqueue(tx, { topic: 'orders', key: 'a', payload: { x: 1 }, headers: { h: 1 }, ordering: 'key' }),
    )
    await pool.query(`select outbox.enqueue('orders', 'a', '{"x": 1}', available_at => now() + interval '1 hour')`)
    await pool.query(`insert into outbox.events (topic, key, payload) values ('orders', 'a', '{}')`)
    const { rows } = await pool.query<{ status: string; lanes: string }>(
      `select status, (select count(distinct lane) from outbox.events) lanes from outbox.events order by id`,
    )
    expect(rows.map(({ status }) => status)).toEqual(['pending', 'scheduled', 'pending'])
    expect(rows[0]?.lanes).toBe('1')

    const byHand = new pg.Pool({ connectionString: await server.createDatabase() })
    await runByHand(byHand, outbox.migrationSql())
    expect(await describeSchema(byHand, 'outbox')).toEqual(await describeSchema(pool, 'outbox'))
    await outbox.close()
    await Promise.all([pool.end(), byHand.end()])
  })
})

function connectionString(pool: pg.Pool): string {
  return pool.options.connectionString ?? ''
}

async function objectsOutside(pool: pg.Pool, schemas: readonly string[]): Promise<unknown[]> {
  const { rows } = await pool.query<unknown[]>({
    text: `select nspname, relname, relkind from pg_class join pg_namespace n on n.oid = relnamespace where nspname <> all ($1) and nspname !~ '^pg_(toast|temp)'
union all select nspname, proname, 'p' from pg_proc join pg_namespace n on n.oid = pronamespace where nspname <> all ($1) order by 1, 2, 3`,
    values: [schemas],
    rowMode: 'array',
  })
  return rows
}
