import pg from 'pg'
import { expect, test } from 'vitest'
import { startPostgres, startProxy, startStandby } from '../src/index.ts'
import { until } from '../src/until.ts'

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

const count = async (url: string): Promise<unknown> => (await query(url, 'SELECT count(*)::int AS n FROM kept'))[0]?.n

test('a standby follows its primary, falls behind a cut and becomes a primary with what it has', async () => {
  await using primary = await startPostgres()
  const url = await primary.createDatabase('kept')
  await query(url, 'CREATE TABLE kept (id int)')
  await using proxy = await startProxy(primary.port)
  await using standby = await startStandby(primary, { via: proxy.port })
  const copy = standby.url('kept')
  await query(url, 'INSERT INTO kept VALUES (1)')
  await until(async () => expect(await count(copy)).toBe(1), { timeoutMs: 20_000 })

  proxy.refuse(true)
  proxy.reset()
  await query(url, 'INSERT INTO kept VALUES (2)')
  await expect(query(copy, 'INSERT INTO kept VALUES (3)')).rejects.toMatchObject({ code: '25006' })
  await primary.kill()
  await standby.promote()
  await query(copy, 'INSERT INTO kept VALUES (3)')
  expect(await query(copy, 'SELECT id FROM kept ORDER BY id')).toEqual([{ id: 1 }, { id: 3 }])
})

test('a promoted standby survives a restart', async () => {
  await using primary = await startPostgres()
  await using standby = await startStandby(primary)
  await standby.promote()
  await primary.stop()
  await standby.restart()
  await query(standby.url(), 'CREATE TABLE mine (id int)')
})
