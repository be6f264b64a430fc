import type { MigrationResult } from './migrations/migrate.ts'
import { migrate, migrationSql } from './migrations/migrate.ts'
import { type OutboxOptions, readOutboxOptions, readRelayOptions, type RelayOptions } from './options.ts'
import { createRelay, type Relay } from './relay/relay.ts'
import { createWaker } from './relay/waker.ts'
import { namesOf } from './storage/names.ts'
import { type Enqueued, enqueueEvents } from './write/enqueue.ts'
import type { EventInput } from './write/validate-event.ts'

/** One outbox: a schema, the client that reaches it, and the relays of this process. */
export interface Outbox<Tx, Db, Given extends Tx = Tx> extends AsyncDisposable {
  /** Brings the schema up to date. Safe at every start and from many processes at once. */
  migrate(): Promise<MigrationResult>
  /** The same as text, for your own migration tool. */
  migrationSql(): string
  /**
   * Writes events in the caller's transaction, any number with one statement (for each 32 MiB of payloads). They exist
   * if and only if that transaction commits.
   *
   * @throws OutboxError NOT_A_TRANSACTION or NOT_IN_TRANSACTION when there is no transaction to join; EVENT_INVALID with
   *   one problem per field, before any SQL, so that the transaction is still usable; EVENT_ID_CONFLICT.
   */
  enqueue(tx: Tx, event: EventInput): Promise<Enqueued>
  enqueue(tx: Tx, events: readonly EventInput[]): Promise<Enqueued[]>
  /** Runs `work` in a transaction and wakes the relays once it has committed. */
  transaction<T>(db: Db, work: (tx: Given) => Promise<T>): Promise<T>
  /** Tells relays that something was committed, those of this process at once and others by one coalesced NOTIFY. */
  wake(): void
  /** A relay of this outbox. It does nothing until `start` or `drain`. */
  relay(options: RelayOptions): Relay
  /**
   * Stops the relays of this outbox and gives its connections back. The pool stays yours to close, afterwards: it waits
   * for the connection that sends wake-ups.
   */
  close(): Promise<void>
}

/**
 * @example
 * const outbox = createOutbox({ client: fromPg(pool) })
 * await outbox.transaction(pool, async (tx) => {
 *   await tx.query("insert into orders (id, status) values (1, 'placed')")
 *   await outbox.enqueue(tx, { topic: 'orders', key: 'order-1', payload: { total: 10 } })
 * })
 *
 * @throws OutboxError OPTIONS_INVALID with every problem in one error.
 */
export function createOutbox<Tx, Db, Given extends Tx = Tx>(
  options: OutboxOptions<Tx, Db, Given>,
): Outbox<Tx, Db, Given> {
  const { client, schema, maxPayloadBytes, serialize } = readOutboxOptions(options)
  const names = namesOf(schema)
  const waker = createWaker(client, names)
  const relays = new Set<Relay>()

  function wake(): void {
    for (const relay of relays) relay.wake()
    waker.wake()
  }

  async function enqueue(tx: Tx, input: EventInput | readonly EventInput[]): Promise<Enqueued | Enqueued[]> {
    const session = await client.session(tx)
    const inputs: readonly EventInput[] = Array.isArray(input) ? input : [input as EventInput]
    const enqueued = await enqueueEvents(session, names, inputs, { maxPayloadBytes, serialize })
    return Array.isArray(input) ? enqueued : (enqueued[0] as Enqueued)
  }

  async function close(): Promise<void> {
    await Promise.all([...relays].map((relay) => relay.stop()))
    await waker.close()
  }

  return {
    async migrate() {
      const connection = await client.connect()
      try {
        return await migrate(connection, names)
      } finally {
        await connection.close()
      }
    },
    migrationSql: () => migrationSql(names),
    enqueue: enqueue as Outbox<Tx, Db, Given>['enqueue'],
    async transaction(db, work) {
      const result = await client.transaction(db, work)
      wake()
      return result
    },
    wake,
    relay(given) {
      const relay = createRelay({
        client,
        names,
        settings: readRelayOptions(given),
        onRunning(running) {
          if (running) relays.add(relay)
          else relays.delete(relay)
        },
      })
      return relay
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
