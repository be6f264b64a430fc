import { afterAll, describe, expect, it } from 'vitest'
import { json, openScene, text } from './scene.ts'

const scene = await openScene()
afterAll(() => scene.close())

const nul = '\0'
const halfPair = '\ud83d'
const emoji = '\u{1f600}'

describe('a NUL character', () => {
  it('arrives unchanged wherever it stands in a payload, and the business row commits with it', async () => {
    const payloads: unknown[] = [
      { note: `a${nul}b` },
      { [`na${nul}me`]: 1 },
      { list: ['x', { deep: nul }] },
      `${nul}top${nul}`,
      nul,
      { many: nul.repeat(5000) },
    ]
    await scene.transaction(async (tx) => {
      await tx.query('insert into orders values (7001)')
      for (const payload of payloads) await scene.outbox.enqueue(tx, { topic: 'nul', key: 'one', payload })
      expect((await tx.query('select 1 as alive')).rows).toEqual([{ alive: 1 }])
    })
    expect(await scene.count('select count(*) from orders where id = 7001')).toBe(1)
    expect((await scene.deliver()).map(json)).toEqual(payloads)
  })

  it('is not confused with text that looks like its escape', async () => {
    const lookalikes = ['C:\\u0000dir', '\\u0000', '\\\\u0000', '\\x00', '%00']
    await scene.enqueue(...lookalikes.map((path) => ({ topic: 'nul', key: 'two', payload: { path } })))
    const delivered = await scene.deliver()
    expect(delivered.map(json)).toEqual(lookalikes.map((path) => ({ path })))
    expect((json(delivered[0] as never) as { path: string }).path).toHaveLength(11)
  })

  // Names travel as PostgreSQL text, which cannot hold NUL: refused with its place, before any SQL.
  it('is refused with its place where it cannot be stored, and the transaction goes on', async () => {
    await scene.transaction(async (tx) => {
      await tx.query('insert into orders values (7002)')
      const bad = {
        topic: `to${nul}pic`,
        key: nul,
        type: `order${nul}`,
        contentType: `text/${nul}`,
        headers: { good: 'yes', [`na${nul}me`]: 'x', value: `x${nul}` },
        payload: {},
      }
      await expect(scene.outbox.enqueue(tx, bad)).rejects.toMatchObject({
        code: 'EVENT_INVALID',
        problems: ['/topic', '/key', '/type', '/contentType', `/headers/na${nul}me`, '/headers/value'].map((path) => ({
          path,
          index: 0,
          message: expect.stringContaining('NUL') as string,
        })),
      })
      await tx.query('insert into orders values (7003)')
    })
    expect(await scene.count('select count(*) from orders where id in (7002, 7003)')).toBe(2)
    expect(await scene.deliver()).toEqual([])
  })

  // The SQL function takes jsonb, which PostgreSQL itself refuses to make of such text; bytes carry it.
  it('arrives unchanged through plain SQL, as JSON text in bytes', async () => {
    const body = '{"note":"a\\u0000b","path":"C:\\\\u0000dir"}'
    await scene.pool.query(
      `insert into outbox.events (topic, key, payload) values ('nul', 'three', convert_to($1, 'UTF8'))`,
      [body],
    )
    const [delivery] = await scene.deliver()
    expect(text(delivery as never)).toBe(body)
  })
})

describe('text that was cut inside an emoji', () => {
  const preview = ('a'.repeat(239) + emoji + 'tail').slice(0, 240)
  const good = Array.from({ length: 10 }, (_, index) => ({
    topic: 'emoji',
    key: `${emoji}-${String(index)}`,
    payload: { preview: `whole ${emoji}`, index },
  }))

  it('arrives with the half that is left, and takes none of the others with it', async () => {
    expect(preview.charCodeAt(239)).toBe(0xd83d)
    await scene.enqueue(
      ...good.map((event, index) => (index === 4 ? { ...event, payload: { preview, index } } : event)),
    )
    const delivered = (await scene.deliver()).map((delivery) => json(delivery) as { preview: string; index: number })
    delivered.sort((a, b) => a.index - b.index)
    expect(delivered).toHaveLength(10)
    for (const { preview: arrived, index } of delivered) expect(arrived).toBe(index === 4 ? preview : `whole ${emoji}`)
  })

  it('arrives as it was as a name in the payload, as a second half, and alone', async () => {
    const payloads: unknown[] = [{ [halfPair]: 1 }, { low: '\ude00' }, { swapped: '\ude00\ud83d' }, halfPair]
    await scene.enqueue(...payloads.map((payload) => ({ topic: 'emoji', key: 'halves', payload })))
    expect((await scene.deliver()).map(json)).toEqual(payloads)
  })

  // Stored as text it would silently become another character, and two keys could become one.
  it.each([
    ['/key', { key: halfPair }],
    ['/topic', { topic: `emoji${halfPair}` }],
    ['/type', { type: halfPair }],
    ['/contentType', { contentType: halfPair }],
    ['/headers/who', { headers: { who: halfPair } }],
    [`/headers/${halfPair}`, { headers: { [halfPair]: 'x' } }],
  ])(
    'is refused at %s with the position in the list; nothing of the list is written and the transaction goes on',
    async (path, bad) => {
      await scene.transaction(async (tx) => {
        const events = good.map((event, index) => (index === 4 ? { ...event, ...bad } : event))
        await expect(scene.outbox.enqueue(tx, events)).rejects.toMatchObject({
          code: 'EVENT_INVALID',
          problems: [{ path, index: 4, message: expect.stringContaining('surrogate') as string }],
        })
        expect((await tx.query('select 1 as alive')).rows).toEqual([{ alive: 1 }])
      })
      expect(await scene.deliver()).toEqual([])
    },
  )

  it('leaves the nine good ones deliverable by themselves, their emoji intact', async () => {
    await scene.enqueue(...good.filter((_, index) => index !== 4))
    const delivered = await scene.deliver()
    expect(delivered.map(({ key }) => key).sort()).toEqual(good.map(({ key }) => key).filter((_, index) => index !== 4))
    for (const delivery of delivered) expect(json(delivery)).toMatchObject({ preview: `whole ${emoji}` })
  })

  it('is refused when it comes out of the serialize option, where it would become another character', async () => {
    const own = await openScene({ serialize: (payload) => `<${String(payload)}>` })
    try {
      await expect(own.enqueue({ topic: 'emoji', key: null, payload: halfPair })).rejects.toMatchObject({
        code: 'EVENT_INVALID',
        problems: [{ path: '/payload', index: 0 }],
      })
      await own.enqueue({ topic: 'emoji', key: null, payload: emoji })
      expect((await own.deliver()).map(text)).toEqual([`<${emoji}>`])
    } finally {
      await own.close()
    }
  })
})
