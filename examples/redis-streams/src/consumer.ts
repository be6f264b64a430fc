import { decodeEntry, type StreamEntry } from '@inorder/relay-redis-streams'
import { Redis } from 'ioredis'
import type pg from 'pg'

const tables = `
create table inbox (consumer text not null, event_id uuid not null, primary key (consumer, event_id));
create table processed (position bigint generated always as identity, event_id uuid not null, key text, payload bytea);`

export async function createConsumerTables(pool: pg.Pool): Promise<void> {
  await pool.query(tables)
}

export interface ConsumerOptions {
  readonly redisUrl: string
  readonly pool: pg.Pool
  readonly stream: string
  readonly name: string
  /** Stops without acknowledging after so many entries, as a crash would. Default: never. */
  readonly crashAfter?: number
}

export interface Consumer {
  /** Duplicates that the inbox dropped. */
  readonly dropped: number
  /** Resolves when it crashed, or when it was stopped and has read everything. */
  readonly done: Promise<void>
  /** Ends as soon as the stream is read to its end. */
  stop(): void
}

const batch = 20
const blockMs = 200

type Reply = [stream: Buffer, entries: [id: Buffer, fields: Buffer[] | null][]][] | null

/** The one consumer of its group: entries are processed in stream order, which is the order of each key. */
export function startConsumer({ redisUrl, pool, stream, name, crashAfter = Infinity }: ConsumerOptions): Consumer {
  let dropped = 0
  let stopping = false

  /** The inbox row and the effect commit together, so that neither is there without the other. */
  async function processOnce(client: pg.PoolClient, { eventId, key, payload }: StreamEntry): Promise<void> {
    await client.query('begin')
    try {
      const { rowCount } = await client.query('insert into inbox values ($1, $2) on conflict do nothing', [
        name,
        eventId,
      ])
      if (rowCount === 1) {
        await client.query('insert into processed (event_id, key, payload) values ($1, $2, $3)', [
          eventId,
          key,
          payload,
        ])
      } else dropped++
      await client.query('commit')
    } catch (error) {
      await client.query('rollback')
      throw error
    }
  }

  async function read(redis: Redis, from: string): Promise<[string, StreamEntry][]> {
    const options = ['COUNT', batch, 'BLOCK', blockMs, 'STREAMS', stream, from] as const
    const reply: Reply = await redis.xreadgroupBuffer('GROUP', name, 'only-one', ...options)
    return (reply?.[0]?.[1] ?? []).flatMap(([id, fields]): [string, StreamEntry][] =>
      fields === null ? [] : [[id.toString(), decodeEntry(fields)]],
    )
  }

  async function run(): Promise<void> {
    const redis = new Redis(redisUrl)
    const client = await pool.connect()
    try {
      await redis.xgroup('CREATE', stream, name, '0', 'MKSTREAM').catch((error: unknown) => {
        if (!String(error).includes('BUSYGROUP')) throw error
      })
      let taken = 0
      // First what it was given and has not acknowledged, then what nobody has been given.
      let from = '0'
      for (;;) {
        const entries = await read(redis, from)
        for (const [, entry] of entries) await processOnce(client, entry)
        taken += entries.length
        if (taken >= crashAfter) return
        if (entries.length > 0) await redis.xack(stream, name, ...entries.map(([id]) => id))
        else if (from === '0') from = '>'
        else if (stopping) return
      }
    } finally {
      client.release()
      redis.disconnect()
    }
  }

  return {
    get dropped() {
      return dropped
    },
    done: run(),
    stop() {
      stopping = true
    },
  }
}
