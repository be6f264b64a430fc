import { freshDatabase } from '@inorder/harness'
import pg from 'pg'
import { fromPg, type PgClient, type PgPool } from '../../src/clients/from-pg.ts'
import type { OutboxEvent } from '../../src/contract/event.ts'
import type { Failure, Publisher } from '../../src/contract/publisher.ts'
import type { RelaySignal } from '../../src/contract/signals.ts'
import type { SqlClient } from '../../src/contract/sql-client.ts'
import type { RelayOptions } from '../../src/options.ts'
import { createOutbox, type Outbox } from '../../src/outbox.ts'
import type { Relay } from '../../src/relay/relay.ts'
import type { EventInput } from '../../src/write/validate-event.ts'
import { testPublisher } from './test-publisher.ts'
import { createWatch } from './watch.ts'

/** An outbox, a pool, and what its relays said and delivered; everything is waited for by signal. */
export interface RelayStand extends AsyncDisposable {
  readonly url: string
  readonly pool: pg.Pool
  readonly outbox: Outbox<PgClient, PgPool | PgClient>
  /** Payload texts in the order of delivery. */
  readonly delivered: string[]
  readonly events: OutboxEvent[]
  readonly signals: RelaySignal[]
  relay(options?: Partial<RelayOptions>): Relay
  enqueue(...events: Partial<EventInput>[]): Promise<void>
  /** Resolves with the first signal, past or future, for which the predicate holds. */
  signal(predicate: (signal: RelaySignal) => boolean): Promise<RelaySignal>
  /** Resolves when so many events were delivered. */
  deliveries(count: number): Promise<readonly string[]>
  states(): Promise<Record<string, number>>
}

/** How the broker of the stand answers for an event; undefined acknowledges it. */
export type Answer = (event: OutboxEvent, tries: number) => Failure | undefined | Promise<Failure | undefined>

export type StandClient = SqlClient<PgClient, PgPool | PgClient>

/** `alter` takes the place of the outbox's client, to disturb it; `given` is a database on a server of the test's own. */
export async function relayStand(
  answer: Answer = () => undefined,
  publisher: Partial<Publisher> = {},
  alter: (client: StandClient) => StandClient = (client) => client,
  given?: string,
): Promise<RelayStand> {
  const url = given ?? (await freshDatabase())
  const pool = new pg.Pool({ connectionString: url, max: 40 })
  pool.on('error', () => undefined)
  const outbox = createOutbox({ client: alter(fromPg(pool)) })
  await outbox.migrate()
  const delivered: string[] = []
  const events: OutboxEvent[] = []
  const signals: RelaySignal[] = []
  const { changed, until } = createWatch()
  const tries = new Map<string, number>()
  const broker = testPublisher(async (run) => {
    let acknowledged = 0
    for (const event of run) {
      const number = (tries.get(event.eventId) ?? 0) + 1
      tries.set(event.eventId, number)
      const failure = await answer(event, number)
      if (failure !== undefined) return { acknowledged, failure }
      delivered.push(Buffer.from(event.payload ?? []).toString())
      events.push(event)
      changed()
      acknowledged += 1
    }
    return { acknowledged }
  }, publisher)

  return {
    url,
    pool,
    outbox,
    delivered,
    events,
    signals,
    relay: ({ onSignal, ...options } = {}) =>
      outbox.relay({
        publisher: broker,
        ...options,
        onSignal(signal) {
          signals.push(signal)
          changed()
          onSignal?.(signal)
        },
      }),
    async enqueue(...inputs) {
      await outbox.transaction(pool, (tx) =>
        outbox.enqueue(
          tx,
          inputs.map((input) => ({ topic: 'orders', key: 'k', ...input, payload: asBytes(input.payload) })),
        ),
      )
    },
    signal: (predicate) => until(() => signals.find(predicate)),
    deliveries: (count) => until(() => (delivered.length >= count ? delivered : undefined)),
    async states() {
      const { rows } = await pool.query<{ status: string; count: string }>(
        'select status, count(*) from outbox.events group by status',
      )
      return Object.fromEntries(rows.map(({ status, count }) => [status, Number(count)]))
    },
    async [Symbol.asyncDispose]() {
      await outbox.close()
      await pool.end()
    },
  }
}

function asBytes(payload: unknown): unknown {
  return typeof payload === 'string' ? Buffer.from(payload) : payload
}
