import { startPostgres } from '@inorder/harness'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { of, serializedOutbox } from '../support/serialized-outbox.ts'

// The lock table is sized by two settings, of which the harness raises one: these are the server's own defaults.
const defaults = { max_connections: '100', max_locks_per_transaction: '64' }
const keys = 30_000

let server: Awaited<ReturnType<typeof startPostgres>>
beforeAll(async () => {
  server = await startPostgres({ settings: defaults })
})
afterAll(() => server.stop())

it.each([
  ['one call', 1],
  ['300 calls', 300],
])('%s with 30,000 keys in one transaction leaves room in the lock table of a default server', async (_, calls) => {
  await using serialized = await serializedOutbox(await server.createDatabase())
  const { outbox, pool } = serialized
  const [writer, other] = [await serialized.begin(), await serialized.begin()]
  const events = Array.from({ length: keys }, (_, key) => of(String(key)))
  for (let call = 0; call < calls; call++)
    await outbox.enqueue(writer, events.slice((call * keys) / calls, ((call + 1) * keys) / calls))
  const { rows } = await other.query(`select count(*)::int n from pg_locks where locktype = 'advisory'`)
  expect(rows).toEqual([{ n: 1024 }])
  // Somebody else's statement with locks of its own, by the hundred.
  await other.query(`do $$ begin for n in 1..500 loop execute 'create table t' || n || ' ()'; end loop; end $$`)
  await writer.query('commit')
  expect((await pool.query('select count(*)::int n from outbox.events')).rows).toEqual([{ n: keys }])
  // And the measure is a true one: a lock for each key is more than this server has.
  await expect(
    pool.query(`select pg_advisory_xact_lock(key) from generate_series(1, ${String(keys)}) key`),
  ).rejects.toMatchObject({ code: '53200' })
})
