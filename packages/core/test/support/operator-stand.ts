import type pg from 'pg'
import type { Operator } from '../../src/operate/operator.ts'
import type { RelayOptions } from '../../src/options.ts'
import type { Relay } from '../../src/relay/relay.ts'
import { type Answer, type RelayStand, relayStand } from './relay-stand.ts'

/** A stand with somebody who looks after it. */
export interface OperatorStand extends RelayStand {
  readonly operator: Operator
  /** Starts a relay that has nothing left to look at by itself: from now on it only sees what a find brings it. */
  finding(options?: Partial<RelayOptions>): Promise<Relay>
  /** Everything the outbox holds, so that two moments can be compared. */
  contents(): Promise<unknown>
}

export async function operatorStand(answer?: Answer): Promise<OperatorStand> {
  const stand = await relayStand(answer)
  return {
    ...stand,
    operator: stand.outbox.operator({ actor: 'jane' }),
    async finding(options = {}) {
      const relay = stand.relay({ sweepIntervalMs: 3_600_000, ...options })
      await relay.start()
      await stand.signal(({ kind }) => kind === 'idle')
      return relay
    },
    async contents() {
      const tables = ['events', 'failures', 'holds', 'audit', 'settings']
      return Promise.all(
        tables.map(
          async (table) =>
            (await stand.pool.query<object>(`select t.xmin, t.xmax, t.* from outbox.${table} t order by 3`)).rows,
        ),
      )
    },
    [Symbol.asyncDispose]: () => stand[Symbol.asyncDispose](),
  }
}

/** An event in a state of its own; `n` counts them from 1. Columns are SQL. */
export async function insertEvents(
  pool: pg.Pool,
  count: number,
  columns: Readonly<Record<string, string>>,
): Promise<string[]> {
  const all = { topic: `'orders'`, key: `'k'`, payload: `convert_to(n::text, 'UTF8')`, ...columns }
  const { rows } = await pool.query<{ id: string }>(
    `insert into outbox.events (${Object.keys(all).join(', ')}) select ${Object.values(all).join(', ')} from generate_series(1, ${count}) n order by n returning id`,
  )
  return rows.map(({ id }) => id)
}

/** Columns of an event that was given up. */
export const failed: Readonly<Record<string, string>> = {
  status: `'failed'`,
  attempts: '10',
  failed_at: 'now()',
  last_error: `'the broker says no'`,
}

/** Columns of an event that was published a minute ago. */
export const published: Readonly<Record<string, string>> = {
  status: `'published'`,
  published_at: `now() - interval '1 minute'`,
}
