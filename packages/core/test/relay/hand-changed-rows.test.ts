import { describe, expect, it } from 'vitest'
import { gate } from '../support/gate.ts'
import { insert } from '../support/outbox-database.ts'
import { sharedStand } from '../support/shared-stand.ts'

const shared = sharedStand()

const largestId = '9223372036854775807'

/** What somebody does in psql, and what has to reach the broker after it, in any order. */
interface Deed {
  readonly sql: string
  readonly brings: readonly string[]
}

const insertOf = (columns: string, values: string): string =>
  `insert into outbox.events (topic, key, payload${columns}) overriding system value values ('orders', 'own', 'new'${values})`

const deeds: Readonly<Record<string, Deed>> = {
  'inserts an event whose transaction id is old': { sql: insertOf(', xid', ", '3'"), brings: ['new'] },
  'inserts an event whose transaction id is far ahead': {
    sql: insertOf(', xid', ", '18446744073709551615'"),
    brings: ['new'],
  },
  'inserts an event with the smallest id': { sql: insertOf(', id', ', 1'), brings: ['new'] },
  'inserts an event with the largest id': { sql: insertOf(', id', `, ${largestId}`), brings: ['new'] },
  'inserts an event that was tried before and is due since long': {
    sql: insertOf(', attempts, available_at', ", 7, '-infinity'"),
    brings: ['new'],
  },
  'inserts an event with a number of attempts below zero': { sql: insertOf(', attempts', ', -7'), brings: ['new'] },
  'inserts an event with the largest numbers': {
    sql: insertOf(', attempts, requeues', ', 2147483647, 2147483647'),
    brings: ['new'],
  },
  'inserts an event that was in line for ever': {
    sql: insertOf(', ready_at, created_at', ", '-infinity', '0001-01-01'"),
    brings: ['new'],
  },
  'inserts an event with headers, type and content type of any text': {
    sql: insertOf(', headers, type, content_type', `, '{"": "", "a\\nb": "ż"}', '', E'\\n'`),
    brings: ['new'],
  },
  'copies events into the table': {
    sql: `create temporary table copy as select * from outbox.events where payload = 'done';
insert into outbox.events (topic, key, payload) select topic, key, payload || ' again' from copy`,
    brings: ['done again'],
  },
  'sets a published event to pending': {
    sql: "update outbox.events set status = 'pending' where payload = 'done'",
    brings: ['done'],
  },
  'sets a failed event to pending': {
    sql: "update outbox.events set status = 'pending' where payload = 'bad'",
    brings: ['bad'],
  },
  'sets a held event to pending': {
    sql: "update outbox.events set status = 'pending' where payload = 'stopped'",
    brings: ['stopped', 'behind it'],
  },
  'sets a held event to published': {
    sql: "update outbox.events set status = 'published' where payload = 'stopped'",
    brings: ['behind it'],
  },
  'deletes a held event': { sql: "delete from outbox.events where payload = 'stopped'", brings: ['behind it'] },
  'sets a scheduled event to pending': {
    sql: "update outbox.events set status = 'pending', available_at = null where payload = 'later'",
    brings: ['later'],
  },
  'sets a scheduled event to an earlier time': {
    sql: "update outbox.events set available_at = now() where payload = 'later'",
    brings: ['later'],
  },
  'lets a waiting event be due': {
    sql: "update outbox.events set available_at = null where payload = 'moody'",
    brings: ['moody', 'patient'],
  },
  'sets a waiting event to an earlier time': {
    sql: "update outbox.events set available_at = now() where payload = 'moody'",
    brings: ['moody', 'patient'],
  },
  'fails a waiting event': {
    sql: "update outbox.events set status = 'failed', available_at = null where payload = 'moody'",
    brings: ['patient'],
  },
  'deletes a waiting event': { sql: "delete from outbox.events where payload = 'moody'", brings: ['patient'] },
  'gives an event that waits behind another one a key of its own': {
    sql: "update outbox.events set key = 'other' where payload = 'patient'",
    brings: ['patient'],
  },
  'takes the key of an event that waits behind another one': {
    sql: "update outbox.events set key = null where payload = 'patient'",
    brings: ['patient'],
  },
  'takes the order of an event that waits behind another one': {
    sql: "update outbox.events set ordering = 'none' where payload = 'patient'",
    brings: ['patient'],
  },
  'changes the topic of an event that waits behind another one': {
    sql: "update outbox.events set topic = 'elsewhere' where payload = 'behind it'",
    brings: ['behind it'],
  },
  'moves an event behind all others': {
    sql: "update outbox.events set id = default where payload = 'moody'",
    brings: ['patient'],
  },
  'changes the payload and the event id of an event in line, and lets it go': {
    sql: `update outbox.events set payload = 'changed', event_id = gen_random_uuid() where payload = 'behind it';
delete from outbox.events where payload = 'stopped'`,
    brings: ['changed'],
  },
  'makes an event in line a tombstone, and lets it go': {
    sql: `update outbox.events set payload = null where payload = 'behind it';
delete from outbox.events where payload = 'stopped'`,
    brings: [''],
  },
}

/** One row in every state, and what waits behind it. Nothing of it is due. */
const rows = `alter table outbox.events alter id restart with 1000;
insert into outbox.events (key, payload, status, attempts, available_at, published_at, failed_at, topic) values
  ('a', 'done', 'published', 0, null, now(), null, 'orders'),
  ('b', 'bad', 'failed', 1, null, null, now(), 'orders'),
  ('c', 'later', 'scheduled', 0, now() + interval '1 hour', null, null, 'orders'),
  ('d', 'moody', 'pending', 1, now() + interval '1 hour', null, null, 'orders'),
  ('d', 'patient', 'pending', 0, null, null, null, 'orders'),
  ('e', 'stopped', 'held', 1, null, null, now(), 'orders'),
  ('e', 'behind it', 'pending', 0, null, null, null, 'orders')`

describe('a relay finds what has to be done after somebody', () => {
  it.each(Object.entries(deeds))('%s', async (_, { sql, brings }) => {
    const { stand } = shared
    await stand.pool.query(rows)
    await using relay = stand.relay()
    await relay.start()
    const idles = (): number => stand.signals.filter(({ kind }) => kind === 'idle').length
    await stand.signal(() => idles() > 3)
    expect(stand.delivered).toEqual([])
    await stand.pool.query(sql)
    await stand.deliveries(brings.length)
    await relay.drain()
    expect([...stand.delivered].sort()).toEqual([...brings].sort())
    expect(stand.signals.filter(({ kind }) => kind === 'fault' || kind === 'database')).toEqual([])
    expect(relay.health()).toMatchObject({ state: 'running', lanesInFlight: 0 })
  })
})

describe('the table refuses', () => {
  it.each(['0', '-1', '-9223372036854775808'])(
    'an event with the id %s, which no relay would ever read',
    async (id) => {
      const { stand } = shared
      await expect(stand.pool.query(insertOf(', id', `, ${id}`))).rejects.toMatchObject({
        code: '23514',
        constraint: 'id_above_zero',
      })
      await insert(stand.pool, 'k', 'x')
      await expect(stand.pool.query(`update outbox.events set id = ${id}`)).rejects.toMatchObject({ code: '428C9' })
      await expect(
        stand.pool.query('alter sequence outbox.events_id_seq minvalue -5 restart with -5'),
      ).resolves.toBeDefined()
      await expect(insert(stand.pool, 'k', 'y')).rejects.toMatchObject({ code: '23514' })
      await stand.pool.query('alter sequence outbox.events_id_seq restart with 1000')
    },
  )
})

describe('an event that somebody changes while it is being published', () => {
  const inHand: Readonly<Record<string, readonly [sql: string, again: readonly string[]]>> = {
    'to published': ["update outbox.events set status = 'published' where payload = '1'", []],
    'to failed': ["update outbox.events set status = 'failed' where payload = '1'", []],
    'to held, and lets it go': [
      "update outbox.events set status = 'held' where payload = '1'; update outbox.events set status = 'pending' where payload = '1'",
      [],
    ],
    'to another key': ["update outbox.events set key = 'x' where payload = '1'", []],
    'to another event id': ["update outbox.events set event_id = gen_random_uuid() where payload = '1'", ['1']],
    'to another requeue': ["update outbox.events set requeues = requeues + 1 where payload = '1'", ['1']],
    'to the end of its key': ["update outbox.events set id = default where payload = '1'", ['1']],
    'to nothing': ["delete from outbox.events where payload = '1'", []],
    'together with everything behind it': ["update outbox.events set key = 'y', xid = '3'", []],
  }

  it.each(Object.entries(inHand))('%s leaves its key free and nothing pending', async (_, [sql, again]) => {
    const [entered, release] = [gate(), gate()]
    const { stand } = shared
    shared.answer = async () => {
      entered.open()
      await release.opened
      return undefined
    }
    await stand.enqueue({ payload: '1' }, { payload: '2' })
    await using relay = stand.relay()
    await relay.start()
    await entered.opened
    await stand.enqueue({ payload: '3' })
    await stand.pool.query(sql)
    release.open()
    await expect.poll(async () => (await stand.states())['pending'] ?? 0, { timeout: 20_000 }).toBe(0)
    await stand.enqueue({ payload: '4' })
    await stand.deliveries(4 + again.length)
    await relay.drain()
    expect([...stand.delivered].sort()).toEqual(['1', '2', '3', '4', ...again].sort())
    expect(stand.signals.filter(({ kind }) => kind === 'fault' || kind === 'database')).toEqual([])
  })
})
