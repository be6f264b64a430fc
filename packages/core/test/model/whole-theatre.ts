import { freshDatabase } from '@inorder/harness'
import pg from 'pg'
import { fromPg, type PgClient, type PgPool } from '../../src/clients/from-pg.ts'
import type { OutboxEvent } from '../../src/contract/event.ts'
import type { Failure } from '../../src/contract/publisher.ts'
import type { Operator } from '../../src/operate/operator.ts'
import type { RelayOptions } from '../../src/options.ts'
import { createOutbox, type Outbox } from '../../src/outbox.ts'
import type { Relay } from '../../src/relay/relay.ts'
import { testPublisher } from '../support/test-publisher.ts'
import { createWatch } from '../support/watch.ts'

/** A database in which one script of whole relays after another is played. */
export interface WholeTheatre extends AsyncDisposable {
  readonly pool: pg.Pool
  readonly outbox: Outbox<PgClient, PgPool | PgClient>
  readonly operator: Operator
  readonly writers: readonly pg.PoolClient[]
  relay(options: Omit<RelayOptions, 'publisher'>): Relay
  /** Resolves when the relays have found so many times more. */
  finds(count: number): Promise<void>
  /** How many events are in line. */
  left(): Promise<number>
  /** The server ends one of the sessions of the relays. */
  cut(session: number): Promise<void>
}

/** Every wait is short, so that a script sees many of them end, but for the slow sweep, which would hide what is lost. */
export const quick = {
  sweepIntervalMs: 3_600_000,
  pollMaxMs: 20,
  leaseMs: 2000,
  backoffBaseMs: 5,
  backoffCapMs: 20,
  breakerMinMs: 5,
  breakerMaxMs: 20,
  maxAttempts: 3,
} as const

export async function openWholeTheatre(answer: (event: OutboxEvent) => Failure | undefined): Promise<WholeTheatre> {
  const connectionString = await freshDatabase()
  const pool = new pg.Pool({ connectionString, max: 10 })
  // Their own, so that what is cut is theirs.
  const relayPool = new pg.Pool({ connectionString, max: 20, application_name: 'relay' })
  for (const each of [pool, relayPool]) each.on('error', () => undefined)
  const outbox = createOutbox({ client: fromPg(pool) })
  const relays = createOutbox({ client: fromPg(relayPool) })
  await outbox.migrate()
  const writers = await Promise.all([1, 2, 3].map(() => pool.connect()))
  const { changed, until } = createWatch()
  let found = 0
  const publisher = testPublisher((run) => {
    for (const [acknowledged, event] of run.entries()) {
      const failure = answer(event)
      if (failure !== undefined) return { acknowledged, failure }
    }
    return { acknowledged: run.length }
  })

  return {
    pool,
    outbox,
    operator: outbox.operator({ actor: 'a script' }),
    writers,
    relay: (options) =>
      relays.relay({
        ...options,
        publisher,
        onSignal({ kind }) {
          if (kind === 'found') found += 1
          changed()
        },
      }),
    async finds(count) {
      const enough = found + count
      await until(() => (found >= enough ? found : undefined))
    },
    async left() {
      const { rows } = await pool.query<{ left: number }>(
        `select count(*)::int as left from outbox.events where status = 'pending'`,
      )
      return rows[0]?.left ?? 0
    },
    async cut(session) {
      await pool.query(
        `select pg_terminate_backend(pid) from (
           select pid, row_number() over (order by pid) - 1 n, count(*) over () of from pg_stat_activity
           where datname = current_database() and application_name = 'relay') p
         where n = $1::int % of`,
        [session],
      )
    },
    async [Symbol.asyncDispose]() {
      for (const writer of writers) writer.release(true)
      await relays.close()
      await outbox.close()
      await Promise.all([pool.end(), relayPool.end()])
    },
  }
}
