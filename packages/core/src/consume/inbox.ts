import { OutboxError } from '../contract/errors.ts'
import {
  checkOptions,
  numberOption,
  objectOption,
  type OptionTable,
  required,
  textOption,
} from '../contract/option-table.ts'
import { explainSchema } from '../contract/schema-fault.ts'
import type { SqlClient } from '../contract/sql-client.ts'
import { sqlState } from '../contract/sql-state.ts'
import { isUuid } from '../contract/uuid.ts'
import { migrate, type MigrationResult, migrationSql } from '../migrations/migrate.ts'
import { type Claim, claimEventStatement, withdrawClaimStatement } from '../storage/claim-event.ts'
import { namesOf } from '../storage/names.ts'
import { purgeInboxStatement, readPurgedInbox } from '../storage/purge-inbox.ts'

export interface InboxOptions<Tx, Db, Given extends Tx = Tx> {
  /** The PostgreSQL client: `fromPg(pool)`. */
  readonly client: SqlClient<Tx, Db, Given>
  /** Schema that holds the tables, at most 63 bytes. Default `outbox`: an outbox and an inbox may share it. */
  readonly schema?: string
}

export interface InboxPurgeOptions {
  /** Whose event ids are forgotten; those of other consumers stay. */
  readonly consumer: string
  /**
   * How long an event id is remembered, in ms. Default 7 days, minimum 0. It must be longer than anything can still be
   * sent again: the broker's redelivery, the outbox's retention with its replays, an operator's requeue.
   */
  readonly retentionMs?: number
  /** Ends the purge between two batches. */
  readonly signal?: AbortSignal
}

/** A duplicate, or what the effect returned. Both are a success: acknowledge the message. */
export type Processed<T> = { readonly duplicate: true } | { readonly duplicate: false; readonly result: T }

/** The duplicate filter of a consumer: an event's effect happens once, however often the event comes. */
export interface Inbox<Tx> {
  /** Brings the schema up to date; it is that of an outbox. Safe at every start and from many processes at once. */
  migrate(): Promise<MigrationResult>
  /** The same as text, for your own migration tool. */
  migrationSql(): string
  /**
   * Notes the event and runs `effect` in the caller's transaction, or runs nothing where the event is a duplicate. The
   * note and what the effect writes commit together. A copy that comes meanwhile waits for the end of the transaction.
   *
   * What the effect does outside the database is not undone by a rollback. When it throws, the note is taken back and the
   * error is thrown on: let it reach the end of the transaction, or what the effect had written by then stays and will
   * be written again.
   *
   * @throws OutboxError OPTIONS_INVALID and EVENT_INVALID before any SQL; NOT_A_TRANSACTION, NOT_IN_TRANSACTION;
   *   SCHEMA_MISSING. Under REPEATABLE READ and above, the client's own error with SQLSTATE 40001 where a copy committed
   *   meanwhile: run the transaction again, and it is reported as a duplicate.
   */
  processOnce<T>(tx: Tx, claim: Claim, effect: () => T | Promise<T>): Promise<Processed<T>>
  /**
   * Forgets old event ids of one consumer and returns how many. From then on their events are new ones. It does nothing
   * while another purge of this consumer runs.
   */
  purge(options: InboxPurgeOptions): Promise<number>
}

const weekMs = 7 * 24 * 3600 * 1000
/** A hundred years: what a timestamp minus an interval holds without thought. */
const longestRetentionMs = 100 * 365 * 24 * 3600 * 1000
/** Rows in one statement, so that none of them keeps its locks for long. */
const purgeBatch = 10_000

const consumerOption = required(textOption({ maxBytes: 255 }))
const inboxTable: OptionTable = {
  client: required(objectOption('session', 'transaction', 'connect')),
  schema: textOption({ maxBytes: 63 }),
}
const claimTable: OptionTable = { consumer: consumerOption, eventId: required({ check: () => undefined }) }
const purgeTable: OptionTable = {
  consumer: consumerOption,
  retentionMs: numberOption({ min: 0, max: longestRetentionMs, integer: false }),
  signal: objectOption('aborted'),
}

/**
 * @example
 * const inbox = createInbox({ client: fromPg(pool) })
 * await outbox.transaction(pool, async (tx) => {
 *   await inbox.processOnce(tx, { consumer: 'billing', eventId }, async () => {
 *     await tx.query('insert into invoices (order_id) values ($1)', ['order-1'])
 *   })
 * })
 *
 * @throws OutboxError OPTIONS_INVALID with every problem in one error.
 */
export function createInbox<Tx, Db, Given extends Tx = Tx>(options: InboxOptions<Tx, Db, Given>): Inbox<Tx> {
  checkOptions('createInbox', options, inboxTable)
  const { client, schema = 'outbox' } = options
  const names = namesOf(schema)

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
    async processOnce(tx, claim, effect) {
      refuseBadClaim(claim)
      // At once where the client can, so that the note is sent before whatever the caller does next.
      const opened = client.session(tx)
      const session = opened instanceof Promise ? await opened : opened
      const { affected } = await session.run(claimEventStatement(names, claim)).catch((cause: unknown) => {
        explainCopy(cause, claim)
        return explainSchema(cause, `Event ${claim.eventId} could not be noted`, schema)
      })
      if (affected === 0) return { duplicate: true }
      try {
        return { duplicate: false, result: await effect() }
      } catch (error) {
        // In a transaction that has failed, or is gone, the note goes with it.
        await session.run(withdrawClaimStatement(names, claim)).catch(() => undefined)
        throw error
      }
    },
    async purge(given) {
      checkOptions('purge', given, purgeTable)
      const { consumer, retentionMs = weekMs, signal } = given
      const statement = purgeInboxStatement(names)({ consumer, retentionMs, limit: purgeBatch })
      const connection = await client.connect()
      try {
        let purged = 0
        while (signal?.aborted !== true) {
          const deleted = readPurgedInbox((await connection.run(statement)).rows)
          purged += deleted ?? 0
          if (deleted === null || deleted < purgeBatch) break
        }
        return purged
      } finally {
        await connection.close()
      }
    },
  }
}

function refuseBadClaim(claim: Claim): void {
  checkOptions('processOnce', claim, claimTable)
  const eventId: unknown = claim.eventId
  if (typeof eventId === 'string' && isUuid(eventId)) return
  throw new OutboxError(
    'EVENT_INVALID',
    `The event id ${String(eventId)} is no UUID, so it is no event of an outbox.`,
    {
      problems: [{ path: '/eventId', message: 'must be a UUID' }],
    },
  )
}

/** Says in the client's own error what to do. It stays that error, because retry loops look for its code. */
function explainCopy(error: unknown, { eventId }: Claim): void {
  if (sqlState(error) !== '40001' || !(error instanceof Error)) return
  const advice = `A copy of event ${eventId} was processed meanwhile: run the transaction again, and it is reported as a duplicate`
  Reflect.set(error, 'message', `${error.message}. ${advice}`)
}
