import { randomBytes } from 'node:crypto'
import type { Scene } from './scene.ts'
import { afterAll, describe, expect, it } from 'vitest'
import { json, openScene } from './scene.ts'

const scene = await openScene()
afterAll(() => scene.close())

/** Random, because a repeated letter compresses and would hide an index that holds the text. */
const longKey = (length: number): string => randomBytes(length).toString('base64').slice(0, length)
const emoji = '\u{1f600}'

describe('a key longer than 1,024 bytes of UTF-8', () => {
  it.each([
    ['3,000 characters', longKey(3000), 3000],
    ['1,025 characters', longKey(1025), 1025],
    ['257 emoji, which are 514 units and 1,028 bytes', emoji.repeat(257), 1028],
    ['600 emoji', emoji.repeat(600), 2400],
  ])('is refused by its bytes, before any SQL: %s', async (_, key, bytes) => {
    await scene.transaction(async (tx) => {
      await expect(scene.outbox.enqueue(tx, { topic: 'keys', key, payload: 1 })).rejects.toMatchObject({
        code: 'EVENT_INVALID',
        problems: [{ path: '/key', index: 0, message: `has ${String(bytes)} bytes of UTF-8, it must have 0 to 1024` }],
      })
      await tx.query('select 1')
    })
  })

  // 23514 names the check of the column; an index that is too small for its key (54000) would name nothing.
  it('is refused by the table in plain SQL and in the SQL function', async () => {
    for (const sql of [
      `insert into outbox.events (topic, key) values ('keys', $1)`,
      `select outbox.enqueue('keys', $1, '1')`,
    ]) {
      await expect(scene.pool.query(sql, [longKey(3000)])).rejects.toMatchObject({ code: '23514', table: 'events' })
      await expect(scene.pool.query(sql, [emoji.repeat(257)])).rejects.toMatchObject({ code: '23514', table: 'events' })
    }
  })
})

describe('a topic', () => {
  it.each([
    ['empty', ''],
    ['256 bytes long', longKey(256)],
    ['64 emoji long, which are 256 bytes', emoji.repeat(64)],
  ])('that is %s is refused', async (_, topic) => {
    await expect(scene.enqueue({ topic, key: null, payload: 1 })).rejects.toMatchObject({
      code: 'EVENT_INVALID',
      problems: [{ path: '/topic', index: 0 }],
    })
    await expect(scene.pool.query('insert into outbox.events (topic) values ($1)', [topic])).rejects.toMatchObject({
      code: '23514',
    })
  })
})

describe('keys up to the limit', () => {
  it('arrive whole, and two that differ in their last character only do not wait for each other', async () => {
    const stem = longKey(1023)
    for (const [failing, other] of [
      [`${stem}a`, `${stem}b`],
      [emoji.repeat(256), `${emoji.repeat(255)}\u{1f601}`],
    ] as const) {
      expect(Buffer.byteLength(failing)).toBe(1024)
      expect(await deliveredWhileFailing(scene, failing, [failing, other])).toEqual([
        [other, 1],
        [other, 2],
      ])
      expect(await deliveredAfterwards(scene)).toEqual([
        [failing, 1],
        [failing, 2],
      ])
    }
  })
})

describe('every key is a key of its own', () => {
  // No key at all is null and must be said; the empty text is a key like any other.
  const keys = [
    '',
    ' ',
    '  ',
    'a b',
    'a/b',
    'a.b',
    'a#b',
    '*',
    '#',
    'zamówienie-ß-😀',
    'A',
    'a',
    'null',
    'é',
    'e\u0301',
    'a\'b"c?:d\\',
  ]

  it.each(keys.map((key) => [JSON.stringify(key), key]))(
    '%s: it holds back its own second event and no other key',
    async (_, failing) => {
      const others = keys.filter((key) => key !== failing)
      const delivered = await deliveredWhileFailing(scene, failing, keys)
      for (const key of others)
        expect(delivered.filter(([arrived]) => arrived === key)).toEqual([
          [key, 1],
          [key, 2],
        ])
      expect(delivered).toHaveLength(others.length * 2)
      expect(await deliveredAfterwards(scene)).toEqual([
        [failing, 1],
        [failing, 2],
      ])
    },
  )

  it('the same key in another topic is another one', async () => {
    const fault = scene.broker.reject({ topic: 'first' }, { times: 1 })
    await scene.enqueue(
      ...['first', 'second'].flatMap((topic) => [1, 2].map((seq) => ({ topic, key: 'same', payload: { seq } }))),
    )
    expect((await scene.deliver()).map(({ topic }) => topic)).toEqual(['second', 'second'])
    expect(fault.hits).toBe(1)
    expect(await deliveredAfterwards(scene)).toEqual([
      ['same', 1],
      ['same', 2],
    ])
  })

  it('a missing key is refused, so that nothing is unordered by accident', async () => {
    await expect(scene.enqueue({ topic: 'keys', payload: 1 } as never)).rejects.toMatchObject({
      code: 'EVENT_INVALID',
      problems: [{ path: '/key', message: expect.stringContaining('pass null') as string }],
    })
  })
})

describe('no key', () => {
  it.each([
    ['from enqueue', () => scene.enqueue(...[1, 2, 3].map((seq) => ({ topic: 'free', key: null, payload: { seq } })))],
    [
      'from the SQL function',
      () =>
        scene.pool.query(
          `select outbox.enqueue('free', payload => jsonb_build_object('seq', seq)) from generate_series(1, 3) seq`,
        ),
    ],
    [
      'from plain SQL',
      () =>
        scene.pool.query(
          `insert into outbox.events (topic, payload) select 'free', convert_to(json_build_object('seq', seq)::text, 'UTF8') from generate_series(1, 3) seq`,
        ),
    ],
  ])('lets an event that fails hold nothing back, and stays null: %s', async (_, enqueue) => {
    const fault = scene.broker.reject(
      ({ topic, payload }) => topic === 'free' && /"seq" ?: ?1/.test(Buffer.from(payload ?? []).toString()),
      { times: 1 },
    )
    await enqueue()
    const delivered = await scene.deliver()
    expect(fault.hits).toBe(1)
    expect(delivered.map(({ key }) => key)).toEqual([null, null])
    expect(delivered.map((delivery) => (json(delivery) as { seq: number }).seq).sort()).toEqual([2, 3])
    expect(await deliveredAfterwards(scene)).toEqual([[null, 1]])
  })
})

type Arrival = [key: string | null, seq: number]

/** Enqueues two events for each key, while the first of `failing` is refused once; what arrives before its retry. */
async function deliveredWhileFailing(own: Scene, failing: string, keys: readonly string[]): Promise<Arrival[]> {
  const fault = own.broker.reject({ topic: 'keys', key: failing }, { times: 1 })
  await own.enqueue(...[1, 2].flatMap((seq) => keys.map((key) => ({ topic: 'keys', key, payload: { seq } }))))
  const delivered = await own.deliver()
  expect(fault.hits).toBe(1)
  return delivered.map(arrival)
}

/** Makes the retry due now, by the database's clock, and says what arrives then. */
async function deliveredAfterwards(own: Scene): Promise<Arrival[]> {
  await own.pool.query(
    `update outbox.events set available_at = now() where status = 'pending' and available_at is not null`,
  )
  return (await own.deliver()).map(arrival)
}

function arrival(delivery: Parameters<typeof json>[0]): Arrival {
  return [delivery.key, (json(delivery) as { seq: number }).seq]
}
