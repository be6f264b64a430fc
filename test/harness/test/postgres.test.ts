import { existsSync } from 'node:fs'
import pg from 'pg'
import { expect, test } from 'vitest'
import { freshDatabase, type PostgresServer, startPostgres } from '../src/index.ts'
import { descendantsOf, isAlive } from '../src/process-tree.mjs'

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

async function makeRow(server: PostgresServer): Promise<string> {
  const url = await server.createDatabase()
  await query(url, 'CREATE TABLE kept (id int)')
  await query(url, 'INSERT INTO kept VALUES (1)')
  return url
}

test('a stopped server leaves no process and no folder', async () => {
  const server = await startPostgres()
  const processes = [server.pid, ...descendantsOf(server.pid)]
  expect(processes.length).toBeGreaterThan(3)
  expect(existsSync(server.folder)).toBe(true)
  await server.stop()
  await server.stop()
  expect(processes.filter(isAlive)).toEqual([])
  expect(existsSync(server.folder)).toBe(false)
})

test('rows survive a clean restart and a kill, on the same port', async () => {
  await using server = await startPostgres()
  const url = await makeRow(server)
  const firstPid = server.pid
  await server.restart()
  expect(server.pid).not.toBe(firstPid)
  expect(await query(url, 'SELECT id FROM kept')).toEqual([{ id: 1 }])
  const killed = [server.pid, ...descendantsOf(server.pid)]
  await server.kill()
  expect(killed.filter(isAlive)).toEqual([])
  await expect(query(url, 'SELECT 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  await server.restart()
  expect(await query(url, 'SELECT id FROM kept')).toEqual([{ id: 1 }])
})

test('a paused server answers nobody, not even an open connection, and answers again when resumed', async () => {
  await using server = await startPostgres()
  const client = new pg.Client({ connectionString: server.url() })
  await client.connect()
  server.pause()
  const answer = client.query<{ one: number }>('SELECT 1 AS one')
  const first = await Promise.race([answer.then(() => 'answered'), silence(server.port)])
  expect(first).toBe('silence')
  server.resume()
  expect((await answer).rows).toEqual([{ one: 1 }])
  await client.end()
})

// A connection attempt of its own: the kernel accepts it, and the handshake stays unanswered until it times out.
async function silence(port: number): Promise<string> {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', connectionTimeoutMillis: 500 })
  client.on('error', () => undefined)
  return client.connect().then(
    () => 'answered',
    () => 'silence',
  )
}

test('a paused server can be killed and stopped', async () => {
  const server = await startPostgres()
  const processes = [server.pid, ...descendantsOf(server.pid)]
  server.pause()
  await server.stop()
  expect(processes.filter(isAlive)).toEqual([])
})

test('durability is off by default and only as far as a killed server cannot notice', async () => {
  await using server = await startPostgres({ settings: { work_mem: '5MB' } })
  const [row] = await query(
    server.url(),
    `SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
            current_setting('synchronous_commit') AS synchronous_commit, current_setting('work_mem') AS work_mem`,
  )
  expect(row).toEqual({ fsync: 'off', full_page_writes: 'on', synchronous_commit: 'on', work_mem: '5MB' })
  await using durable = await startPostgres({ durable: true })
  expect(await query(durable.url(), 'SHOW fsync')).toEqual([{ fsync: 'on' }])
})

test('the oldest supported major starts too', async () => {
  await using server = await startPostgres({ major: 14 })
  const [row] = await query(server.url(), 'SHOW server_version_num')
  expect(String(row?.server_version_num)).toMatch(/^14/)
  expect(server.major).toBe(14)
})

test('a start that fails shows what the server said and leaves nothing', async () => {
  const failure = startPostgres({ settings: { shared_buffers: 'plenty' } })
  await expect(failure).rejects.toThrow(/invalid value for parameter "shared_buffers": "plenty"/)
})

test('every test file gets an empty database of its own', async () => {
  const [first, second] = [await freshDatabase(), await freshDatabase()]
  expect(first).not.toBe(second)
  await query(first, 'CREATE TABLE mine (id int)')
  expect(await query(second, "SELECT to_regclass('mine')::text AS found")).toEqual([{ found: null }])
})
