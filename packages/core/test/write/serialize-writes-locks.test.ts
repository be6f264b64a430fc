import type pg from 'pg'
import { expect, it } from 'vitest'
import { of, type SerializedOutbox, serializedOutbox } from '../support/serialized-outbox.ts'

const keys = Array.from({ length: 40 }, (_, number) => `key-${number}`)

/** The advisory locks that the keys share, ascending. */
async function stripesOfKeys(serialized: SerializedOutbox): Promise<number[]> {
  const client = await serialized.begin()
  await serialized.outbox.enqueue(
    client,
    keys.map((key) => of(key)),
  )
  const stripes = await stripesHeldBy(serialized.pool, client)
  await client.query('rollback')
  return stripes
}

async function stripesHeldBy(pool: pg.Pool, client: pg.PoolClient): Promise<number[]> {
  const { processID } = client as pg.PoolClient & { processID: number }
  const { rows } = await pool.query<{ stripe: number }>(
    `select objid::int stripe from pg_locks where pid = $1 and locktype = 'advisory' and granted order by 1`,
    [processID],
  )
  return rows.map(({ stripe }) => stripe)
}

it.each(['lowest', 'highest'] as const)(
  'a call that writes to many keys takes the lowest lock first and the highest last, so that no two wait for each other: the %s is taken',
  async (which) => {
    await using serialized = await serializedOutbox()
    const { outbox, pool } = serialized
    const stripes = await stripesOfKeys(serialized)
    expect(stripes.length).toBeGreaterThan(30)
    const taken = which === 'lowest' ? stripes[0] : stripes.at(-1)
    const holder = await serialized.begin()
    await holder.query(`select pg_advisory_xact_lock((select tableoid::integer from outbox.settings), $1)`, [taken])
    const writer = await serialized.begin()
    const writing = outbox.enqueue(
      writer,
      keys.toReversed().map((key) => of(key)),
    )
    await serialized.waits(writer)
    expect(await stripesHeldBy(pool, writer)).toEqual(which === 'lowest' ? [] : stripes.slice(0, -1))
    await holder.query('commit')
    await writing
    await writer.query('commit')
  },
)
