import { setTimeout as delay } from 'node:timers/promises'
import type { EventInput, Outbox, PgClient, PgPool } from '@inorder/core'
import type pg from 'pg'
import type { Written } from '../../test/stand/order-proof.ts'

// A small shop. Every transaction changes a row of the business and enqueues what that means; the ledger notes the
// events in the same transaction, so that at the end there is something to compare the broker with.

const setupSql = `
create schema shop;
create table shop.orders (id integer primary key, status text not null, item text not null, events integer not null);
create table shop.stock (item text primary key, reserved integer not null, sold integer not null, events integer not null);
create table shop.ledger (
  event_id uuid primary key, key text not null, position integer not null, payload bytea not null, unique (key, position));
insert into shop.stock select unnest(array['teapot', 'kettle', 'cup', 'spoon']), 0, 0, 0;`

const nextStatus: Readonly<Record<string, string>> = { placed: 'paid', paid: 'packed', packed: 'shipped' }
const items = ['teapot', 'kettle', 'cup', 'spoon'] as const

export interface Committed {
  readonly eventIds: readonly string[]
  readonly text: string
}

export interface Shop {
  readonly rolledBack: number
  /** Writes transactions until the signal aborts. */
  write(till: string, signal: AbortSignal): Promise<void>
}

export interface LedgerEntry extends Written {
  readonly payload: Buffer
}

export interface ShopOptions {
  readonly db: pg.Pool
  readonly outbox: Outbox<PgClient, PgPool | PgClient>
  /** Mean time between two transactions of a till. */
  readonly everyMs: number
  readonly onCommitted: (committed: Committed) => void
  readonly onRolledBack: (text: string) => void
}

class PaymentDeclined extends Error {}

export async function openShop(db: pg.Pool): Promise<void> {
  await db.query(setupSql)
}

/** What the shop committed, read from its own table. */
export async function readLedger(db: pg.Pool): Promise<LedgerEntry[]> {
  const { rows } = await db.query<LedgerEntry>(
    'select event_id::text "eventId", key, position, payload from shop.ledger order by key, position',
  )
  return rows
}

export function createShop({ db, outbox, everyMs, onCommitted, onRolledBack }: ShopOptions): Shop {
  let orders = 0
  let rolledBack = 0

  /** One transaction on a connection of the till: what it enqueued, in words. */
  async function transaction(client: pg.PoolClient, work: () => Promise<EventInput[]>): Promise<void> {
    let text = ''
    try {
      const eventIds = await outbox.transaction(client, async () => {
        const events = await work()
        text = events.map(({ key, type }) => `${key ?? ''} ${type ?? ''}`).join(', ')
        const enqueued = await outbox.enqueue(client, events)
        for (const [index, { eventId }] of enqueued.entries()) await note(client, eventId, events[index])
        if (Math.random() < 0.06) throw new PaymentDeclined()
        return enqueued.map(({ eventId }) => eventId)
      })
      onCommitted({ eventIds, text })
    } catch (error) {
      if (!(error instanceof PaymentDeclined)) throw error
      rolledBack++
      onRolledBack(text)
    }
  }

  async function placeOrder(client: pg.PoolClient): Promise<EventInput[]> {
    const id = ++orders
    const item = items[Math.floor(Math.random() * items.length)] ?? 'teapot'
    await client.query(`insert into shop.orders values ($1, 'placed', $2, 0)`, [id, item])
    await client.query('update shop.stock set reserved = reserved + 1 where item = $1', [item])
    return [orderEvent(id, 'placed', item), stockEvent(item, 'reserved', id)]
  }

  /** Moves some open order on, or places one when there is none that nobody else has in hand. */
  async function advanceOrder(client: pg.PoolClient): Promise<EventInput[]> {
    const { rows } = await client.query<{ id: number; status: string; item: string }>(
      `select id, status, item from shop.orders where status in ('placed', 'paid', 'packed') order by random() limit 1 for update skip locked`,
    )
    const [order] = rows
    const status = nextStatus[order?.status ?? '']
    if (order === undefined || status === undefined) return placeOrder(client)
    await client.query('update shop.orders set status = $2 where id = $1', [order.id, status])
    if (status !== 'shipped') return [orderEvent(order.id, status, order.item)]
    await client.query('update shop.stock set reserved = reserved - 1, sold = sold + 1 where item = $1', [order.item])
    return [orderEvent(order.id, status, order.item), stockEvent(order.item, 'released', order.id)]
  }

  return {
    get rolledBack() {
      return rolledBack
    },
    async write(_till, signal) {
      const client = await db.connect()
      try {
        while (!signal.aborted) {
          await transaction(client, () => (Math.random() < 0.4 ? placeOrder(client) : advanceOrder(client)))
          await delay(everyMs * (0.5 + Math.random()), undefined, { signal }).catch(() => undefined)
        }
      } finally {
        client.release()
      }
    },
  }
}

function orderEvent(id: number, status: string, item: string): EventInput {
  return event('orders', `order-${id}`, `order.${status}`, { order: id, status, item })
}

function stockEvent(item: string, change: string, order: number): EventInput {
  return event('stock', item, `stock.${change}`, { item, change, order })
}

/** The payload as bytes, so that the very same bytes can be looked for at the broker. */
function event(topic: string, key: string, type: string, payload: object): EventInput {
  return { topic, key, type, payload: Buffer.from(JSON.stringify(payload)), contentType: 'application/json' }
}

/** The row of the order or the item is locked, so its events are counted in the order of their commits. */
async function note(client: pg.PoolClient, eventId: string, event: EventInput | undefined): Promise<void> {
  if (event === undefined) return
  const isOrder = event.topic === 'orders'
  const { rows } = await client.query<{ events: number }>(
    isOrder
      ? 'update shop.orders set events = events + 1 where id = $1 returning events'
      : 'update shop.stock set events = events + 1 where item = $1 returning events',
    [isOrder ? Number(event.key?.slice('order-'.length)) : event.key],
  )
  await client.query('insert into shop.ledger values ($1, $2, $3, $4)', [
    eventId,
    event.key,
    rows[0]?.events,
    event.payload,
  ])
}
