import { createOutbox, type Enqueued, type EventInput, fromPg, type Outbox, type OutboxOptions } from '@inorder/core'
import type { PgClient, PgPool, Relay, RelayOptions, SqlClient } from '@inorder/core'
import { freshDatabase } from '@inorder/harness'
import { type Delivery, type MemoryBroker, memoryBroker, memoryPublisher } from '@inorder/relay-memory'
import pg from 'pg'

type Client = PgClient & Pick<pg.PoolClient, 'query'>

/** An application with a table `orders`, an outbox beside it, and a broker that keeps what reaches it. */
export interface Scene extends AsyncDisposable {
  readonly url: string
  /** The application's pool. The relay has one of its own. */
  readonly pool: pg.Pool
  readonly outbox: Outbox<PgClient, PgPool | PgClient>
  readonly broker: MemoryBroker
  relay(options?: Partial<RelayOptions>): Relay
  /** Runs `work` in a transaction of the application. */
  transaction<T>(work: (tx: Client) => Promise<T>): Promise<T>
  /** Enqueues in a transaction of its own, all events in one call. */
  enqueue(...events: EventInput[]): Promise<Enqueued[]>
  /** Publishes everything that is due with the default options and returns what that brought to the broker. */
  deliver(): Promise<readonly Delivery[]>
  /** A number that a statement returns. */
  count(sql: string, values?: unknown[]): Promise<number>
  close(): Promise<void>
}

export interface SceneOptions extends Partial<OutboxOptions<PgClient, PgPool | PgClient>> {
  readonly url?: string
  /** Takes the place of the outbox's client, to watch it. */
  readonly alter?: (client: SqlClient<PgClient, PgPool | PgClient>) => SqlClient<PgClient, PgPool | PgClient>
}

export async function openScene({
  url: given,
  alter = (client) => client,
  ...options
}: SceneOptions = {}): Promise<Scene> {
  const url = given ?? (await freshDatabase())
  const pool = new pg.Pool({ connectionString: url, max: 20 })
  const relayPool = new pg.Pool({ connectionString: url, max: 24 })
  for (const each of [pool, relayPool]) each.on('error', () => undefined)
  const outbox = createOutbox({ client: alter(fromPg(relayPool)), ...options })
  await outbox.migrate()
  await pool.query('create table if not exists orders (id bigint primary key)')
  const broker = memoryBroker()
  const relay = outbox.relay({ publisher: memoryPublisher(broker) })
  let seen = 0

  async function close(): Promise<void> {
    await outbox.close()
    await Promise.all([pool.end(), relayPool.end()])
  }

  const transaction: Scene['transaction'] = (work) => outbox.transaction(pool, (tx) => work(tx as Client))
  return {
    url,
    pool,
    outbox,
    broker,
    relay: (more = {}) => outbox.relay({ publisher: memoryPublisher(broker), ...more }),
    transaction,
    enqueue: (...events) => transaction((tx) => outbox.enqueue(tx, events)),
    async deliver() {
      await relay.drain()
      const news = broker.deliveries.slice(seen)
      seen = broker.deliveries.length
      return news
    },
    async count(sql, values = []) {
      const { rows } = await pool.query<unknown[]>({ text: sql, values, rowMode: 'array' })
      return Number(rows[0]?.[0])
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** The body of a delivery as text. Never called for a tombstone, which has none. */
export function text({ payload }: Delivery): string {
  if (payload === null) throw new Error('a tombstone has no body')
  return Buffer.from(payload).toString()
}

export function json(delivery: Delivery): unknown {
  return JSON.parse(text(delivery))
}
