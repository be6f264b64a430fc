import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import type { EventInput, Outbox, PgClient, PgPool } from '@inorder/core'
import type { WebhookDefinition } from '@octokit/webhooks-examples'
import type pg from 'pg'

export const topic = 'shop'

const tables = `
create table orders (id text primary key, status text not null, changes integer not null default 0);
create table written (event_id uuid primary key, key text, position integer not null, payload bytea not null);`

export async function createShopTables(pool: pg.Pool): Promise<void> {
  await pool.query(tables)
}

/** The life of some orders, mixed as customers mix them. */
export function orderEvents(orders: number): EventInput[] {
  const statuses = ['placed', 'paid', 'packed', 'shipped']
  const life = statuses.flatMap((status, step) =>
    Array.from({ length: orders }, (_, index) => ({ order: `order-${index + 1}`, status, turn: step * 3 + index })),
  )
  return life
    .toSorted((a, b) => a.turn - b.turn)
    .map(({ order, status }) => ({ topic, key: order, type: `order.${status}`, payload: { order, status } }))
}

/** The examples of a file in the format of `@octokit/webhooks-examples`: the repository is the key. */
export function webhookEvents(file: string): EventInput[] {
  const webhooks = createRequire(import.meta.url)(resolve(file)) as WebhookDefinition[]
  return webhooks.flatMap(({ name, examples }) =>
    examples.map((payload) => ({ topic, key: keyOf(payload), type: name, payload })),
  )
}

function keyOf(payload: object): string | null {
  const { repository } = payload as { repository?: { full_name?: string } }
  return repository?.full_name ?? null
}

/** Each event in a transaction with the row it is about: both exist afterwards, or neither does. */
export async function runShop(
  pool: pg.Pool,
  outbox: Outbox<PgClient, PgPool | PgClient>,
  events: readonly EventInput[],
): Promise<void> {
  const client = await pool.connect()
  try {
    for (const event of events) {
      const payload = Buffer.from(JSON.stringify(event.payload))
      await outbox.transaction(client, async () => {
        const { rows } = await client.query<{ changes: number }>(
          `insert into orders values ($1, $2, 1)
           on conflict (id) do update set status = excluded.status, changes = orders.changes + 1 returning changes`,
          [event.key ?? 'no key', event.type],
        )
        const { eventId } = await outbox.enqueue(client, { ...event, payload, contentType: 'application/json' })
        await client.query('insert into written values ($1, $2, $3, $4)', [
          eventId,
          event.key,
          rows[0]?.changes,
          payload,
        ])
      })
    }
  } finally {
    client.release()
  }
}
