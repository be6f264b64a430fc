import { createRequire } from 'node:module'
import { createOutbox, type EventInput, fromPg } from '@inorder/core'
import { available, freshDatabase, startRedis } from '@inorder/harness'
import { decodeEntry, redisStreamsPublisher, type StreamEntry } from '@inorder/relay-redis-streams'
import type { WebhookDefinition } from '@octokit/webhooks-examples'
import { Redis } from 'ioredis'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'

// What GitHub really sends. Its key is the repository; a payload without one, such as an installation, is unordered.
const webhooks = createRequire(import.meta.url)('@octokit/webhooks-examples') as readonly WebhookDefinition[]
const inputs = webhooks.flatMap(({ name, examples }) =>
  examples.map((payload) => ({
    topic: 'github',
    key: repositoryOf(payload),
    type: name,
    payload: Buffer.from(JSON.stringify(payload)),
    contentType: 'application/json',
  })),
) satisfies EventInput[]

/** The published types promise a repository in payloads that have none. */
function repositoryOf(payload: object): string | null {
  const { repository } = payload as { repository?: { full_name?: string } }
  return repository?.full_name ?? null
}

async function openRig(): Promise<{ pool: pg.Pool; redisUrl: string; read: () => Promise<StreamEntry[]> }> {
  const server = await startRedis()
  const pool = new pg.Pool({ connectionString: await freshDatabase(), max: 8 })
  onTestFinished(async () => {
    await pool.end()
    await server.stop()
  })
  const read = async (): Promise<StreamEntry[]> => {
    const redis = new Redis(server.url)
    try {
      return (await redis.xrangeBuffer('github', '-', '+')).map(([, fields]) => decodeEntry(fields))
    } finally {
      redis.disconnect()
    }
  }
  return { pool, redisUrl: server.url, read }
}

describe.skipIf(!available('redis', { own: true }))('every example payload of the GitHub webhooks', () => {
  test('there is real variety in them', () => {
    expect(inputs.length).toBeGreaterThan(300)
    expect(new Set(inputs.map(({ key }) => key)).size).toBeGreaterThan(10)
    expect(inputs.some(({ key }) => key === null)).toBe(true)
  })

  test('travels from its transaction to Redis with the same bytes, each repository in order', {
    timeout: 300_000,
  }, async () => {
    const { pool, redisUrl, read } = await openRig()
    await using outbox = createOutbox({ client: fromPg(pool) })
    await outbox.migrate()
    await pool.query('create table received (event_id uuid primary key, repository text, kind text not null)')
    const client = await pool.connect()
    try {
      for (const input of inputs) {
        await outbox.transaction(client, async () => {
          const { eventId } = await outbox.enqueue(client, input)
          await client.query('insert into received values ($1, $2, $3)', [eventId, input.key, input.type])
        })
      }
    } finally {
      client.release()
    }

    const counts = await outbox.relay({ publisher: redisStreamsPublisher({ connection: redisUrl }) }).drain()
    expect(counts).toEqual({ published: inputs.length, counted: 0, failed: 0 })

    const entries = await read()
    expect(entries).toHaveLength(inputs.length)
    const { rows } = await pool.query<{ event_id: string }>('select event_id::text from received order by 1')
    expect(entries.map(({ eventId }) => eventId).toSorted()).toEqual(rows.map(({ event_id }) => event_id))
    for (const key of new Set(inputs.map((input) => input.key))) {
      const sent = inputs.filter((input) => input.key === key).map(asText)
      const arrived = entries.filter((entry) => entry.key === key).map(asText)
      // Events without a key promise no order: compared as sets.
      expect(key === null ? arrived.toSorted() : arrived).toEqual(key === null ? sent.toSorted() : sent)
    }
  })
})

/** Type and exact bytes, so that a difference shows which event it is. */
function asText({ type, payload }: { type: string | null; payload: Buffer | null }): string {
  return `${type ?? ''} ${payload?.toString('base64') ?? 'null'}`
}
