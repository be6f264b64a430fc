import { randomBytes } from 'node:crypto'
import { freshDatabase } from '@inorder/harness'
import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { openScene, type Scene } from './scene.ts'

const scene = await openScene()
afterAll(() => scene.close())

const everyByte = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
const bodies: readonly (readonly [string, Uint8Array])[] = [
  ['an encoded record', Buffer.from('0000000007FFFE80', 'hex')],
  ['every byte', everyByte],
  ['every byte, backwards', Buffer.from(everyByte.toReversed())],
  ['backslashes and octal digits', Buffer.from('\\\\ \\000 \\x00 \\')],
  ['no byte at all', Buffer.alloc(0)],
  ['a view into a larger buffer', new Uint8Array(everyByte.buffer, everyByte.byteOffset + 7, 11)],
  ['4,096 bytes, the most that come with their row', randomBytes(4096)],
  ['4,097 bytes, which are loaded separately', randomBytes(4097)],
  ['1 MiB, the most that enqueue takes by default', randomBytes(1024 * 1024)],
]

describe('bytes arrive as they were', () => {
  it.each(bodies)('%s', async (_, body) => {
    await arrives(scene, body)
  })

  it('in a database whose bytea_output is escape, under settings that an application may have', async () => {
    const url = await freshDatabase()
    const admin = new pg.Client({ connectionString: url })
    await admin.connect()
    const database = pg.escapeIdentifier(admin.database ?? '')
    const settings = {
      bytea_output: 'escape',
      extra_float_digits: '0',
      DateStyle: 'German',
      search_path: '',
      TimeZone: 'Asia/Kolkata',
    }
    for (const [name, value] of Object.entries(settings)) {
      await admin.query(`alter database ${database} set ${name} = ${pg.escapeLiteral(value)}`)
    }
    await admin.query('create schema app')
    await admin.end()
    // Only the application's own table needs a search_path.
    const own = await openScene({ url: `${url}?options=-csearch_path%3Dapp` })
    try {
      expect(await own.count(`select (current_setting('bytea_output') = 'escape')::int`)).toBe(1)
      for (const [, body] of bodies) await arrives(own, body)
    } finally {
      await own.close()
    }
  })

  it('from plain SQL', async () => {
    await scene.pool.query(
      `insert into outbox.events (topic, key, payload, content_type) values ('bytes', 'k', $1, 'x/y')`,
      [everyByte],
    )
    expect(await scene.deliver()).toMatchObject([{ payload: everyByte, contentType: 'x/y' }])
  })

  it('with the content type that was given, or one that says nothing', async () => {
    await scene.enqueue(
      { topic: 'bytes', key: 'k', payload: everyByte, contentType: 'application/x-protobuf' },
      { topic: 'bytes', key: 'k', payload: everyByte },
    )
    expect((await scene.deliver()).map(({ contentType }) => contentType)).toEqual([
      'application/x-protobuf',
      'application/octet-stream',
    ])
  })
})

async function arrives(own: Scene, body: Uint8Array): Promise<void> {
  await own.enqueue({ topic: 'bytes', key: 'k', payload: body, contentType: 'application/x-protobuf' })
  const [delivery] = await own.deliver()
  expect(delivery?.payload).not.toBeNull()
  expect(Buffer.from(delivery?.payload ?? []).equals(body)).toBe(true)
}

describe('nothing, null and empty are four different things', () => {
  // Null is a tombstone, so the JSON value null goes in as its four bytes.
  const jsonNull = { payload: Buffer.from('null'), contentType: 'application/json' }
  const hex = (payload: Uint8Array | null): string | null =>
    payload === null ? null : Buffer.from(payload).toString('hex')

  it('at enqueue', async () => {
    const event = { topic: 'customers', key: 'cust-9' }
    await scene.enqueue(
      { ...event, payload: null },
      { ...event, ...jsonNull },
      { ...event, payload: '' },
      { ...event, payload: new Uint8Array(0) },
      { ...event, payload: { toJSON: () => null } },
    )
    const delivered = await scene.deliver()
    expect(delivered.map(({ payload }) => hex(payload))).toEqual([null, '6e756c6c', '2222', '', '6e756c6c'])
  })

  it('in the SQL function and in plain SQL', async () => {
    await scene.pool.query(`select outbox.enqueue('customers', 'cust-9', null)`)
    await scene.pool.query(`select outbox.enqueue('customers', 'cust-9', 'null')`)
    await scene.pool.query(`select outbox.enqueue('customers', 'cust-9', '""')`)
    await scene.pool.query(
      `insert into outbox.events (topic, key, payload) values ('customers', 'cust-9', ''), ('customers', 'cust-9', null)`,
    )
    const delivered = await scene.deliver()
    expect(delivered.map(({ payload }) => hex(payload))).toEqual([null, '6e756c6c', '2222', '', null])
  })

  it('and undefined is none of them', async () => {
    await expect(scene.enqueue({ topic: 'customers', key: 'cust-9', payload: undefined })).rejects.toMatchObject({
      code: 'EVENT_INVALID',
      problems: [{ path: '/payload' }],
    })
  })
})
