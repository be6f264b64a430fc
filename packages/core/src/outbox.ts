import type { EventSchemas } from './contract/event-registry.ts'
import type { MigrationResult } from './migrations/migrate.ts'
import { migrate, migrationSql } from './migrations/migrate.ts'
import { type OutboxOptions, readOutboxOptions, readRelayOptions, type RelayOptions } from './options.ts'
import { createOperator, type Operator, type OperatorOptions } from './operate/operator.ts'
import { pause } from './relay/pace.ts'
import { createRelay, type Relay } from './relay/relay.ts'
import { createWaker } from './relay/waker.ts'
import { namesOf } from './storage/names.ts'
import { storeSerializeWritesSql, storeSerializeWritesStatement } from './storage/store-serialize-writes.ts'
import { checkEvents, checkPlainEvents } from './write/check-events.ts'
import { checkEnqueueOptions, type Enqueued, type EnqueueOptions, enqueueEvents } from './write/enqueue.ts'
import type { InputFor } from './write/typed-event.ts'
import { createUnawaited } from './write/unawaited.ts'
import type { EventInput } from './write/validate-event.ts'

/** One outbox: a schema, the client that reaches it, and the relays of this process. */
export interface Outbox<Tx, Db, Given extends Tx = Tx, Input = EventInput> extends AsyncDisposable {
  /**
   * Brings the schema up to date. Safe at every start and from many processes at once. Stores `serializeWrites` where it
   * was given, so that the SQL function `enqueue` follows it.
   */
  migrate(): Promise<MigrationResult>
  /** The same as text, for your own migration tool. */
  migrationSql(): string
  /**
   * Writes events in the caller's transaction, any number with one statement (for each 32 MiB of payloads). They exist
   * if and only if that transaction commits.
   *
   * @throws OutboxError EVENT_INVALID with one problem per field, before any SQL, so that the transaction is still usable;
   *   NOT_A_TRANSACTION or NOT_IN_TRANSACTION when there is no transaction to join; EVENT_ID_CONFLICT.
   */
  enqueue(tx: Tx, event: Input, options?: EnqueueOptions): Promise<Enqueued>
  enqueue(tx: Tx, events: readonly Input[], options?: EnqueueOptions): Promise<Enqueued[]>
  /** Runs `work` in a transaction and wakes the relays once it has committed. */
  transaction<T>(db: Db, work: (tx: Given) => Promise<T>): Promise<T>
  /** Tells relays that something was committed, those of this process at once and others by one coalesced NOTIFY. */
  wake(): void
  /** A relay of this outbox. It does nothing until `start` or `drain`. */
  relay(options: RelayOptions): Relay
  /** The verbs of whoever looks after this outbox. It keeps no connection between two calls. */
  operator(options: OperatorOptions): Operator
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
export function createOutbox<Tx, Db, Given extends Tx = Tx, Schemas extends EventSchemas = never>(
  options: OutboxOptions<Tx, Db, Given, Schemas>,
): Outbox<Tx, Db, Given, InputFor<Schemas>> {
  const { client, schema, maxPayloadBytes, serialize, serializeWrites, events: registry } = readOutboxOptions(options)
  const names = namesOf(schema)
  const waker = createWaker(client, names)
  const relays = new Set<Relay>()
  const unawaited = createUnawaited<Tx>()

  function wake(): void {
    for (const relay of relays) relay.wake()
    waker.wake()
  }

  function enqueue(
    tx: Tx,
    input: EventInput | readonly EventInput[],
    given: EnqueueOptions = {},
  ): Promise<Enqueued | Enqueued[]> {
    const enqueued: Promise<Enqueued | Enqueued[]> = write(tx, input, given).catch((error: unknown) => {
      // Whoever runs the transaction is told by its end; one who did not wait for this as well need not hear it twice.
      if (client.saysRolledBack?.(error) === true) enqueued.catch(() => undefined)
      throw error
    })
    unawaited.add(tx, enqueued)
    return enqueued
  }

  async function write(
    tx: Tx,
    input: EventInput | readonly EventInput[],
    given: EnqueueOptions,
  ): Promise<Enqueued | Enqueued[]> {
    checkEnqueueOptions(given)
    // Before anything that waits: a client may be able to send the statement before the caller goes on.
    const session = client.session(tx)
    const inputs: readonly EventInput[] = Array.isArray(input) ? input : [input as EventInput]
    const limits = { maxPayloadBytes, serialize }
    const events =
      registry === undefined ? checkPlainEvents(inputs, limits) : await checkEvents(inputs, limits, registry)
    const opened = session instanceof Promise ? await session : session
    const enqueued = await enqueueEvents(opened, names, events, { ...given, serializeWrites })
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
        const result = await migrate(connection, names)
        if (serializeWrites !== undefined) await connection.run(storeSerializeWritesStatement(names, serializeWrites))
        return result
      } finally {
        await connection.close()
      }
    },
    migrationSql: () =>
      serializeWrites === undefined
        ? migrationSql(names)
        : `${migrationSql(names)}\n${storeSerializeWritesSql(names, serializeWrites)};\n`,
    enqueue: enqueue as Outbox<Tx, Db, Given, InputFor<Schemas>>['enqueue'],
    async transaction(db, work) {
      const result = await client.transaction(db, (tx) => unawaited.within(tx, work))
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
    operator: (given) => createOperator({ client, names, wake, pause }, given),
    close,
    [Symbol.asyncDispose]: close,
  }
}
