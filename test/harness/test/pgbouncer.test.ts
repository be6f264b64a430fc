import { existsSync } from 'node:fs'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { available, startPgBouncer, startPostgres } from '../src/index.ts'
import { isAlive } from '../src/process-tree.mjs'

async function open(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

const backend = async (client: pg.Client): Promise<unknown> =>
  (await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid

describe.skipIf(!available('pgbouncer'))('a private PgBouncer', () => {
  test('a session belongs to a client for one transaction only', async () => {
    await using postgres = await startPostgres()
    await using pooler = await startPgBouncer({ port: postgres.port, settings: { default_pool_size: '1' } })
    const [first, second] = [await open(pooler.url('postgres')), await open(pooler.url('postgres'))]
    expect(await backend(first)).toBe(await backend(second))
  })

  test('a stopped pooler leaves no process and no folder', async () => {
    await using postgres = await startPostgres()
    const pooler = await startPgBouncer({ port: postgres.port })
    await pooler.stop()
    expect(isAlive(pooler.pid)).toBe(false)
    expect(existsSync(pooler.folder)).toBe(false)
  })

  test('a start that fails shows what it said', async () => {
    await expect(startPgBouncer({ port: 1, settings: { pool_mode: 'plenty' } })).rejects.toThrow(/pool_mode/)
  })
})
