import type pg from 'pg'

type Sql = Pick<pg.Client, 'query'> | Pick<pg.Pool, 'query'>

export interface FillOptions {
  readonly rows: number
  /** SQL for the key of row `n`, counted from 1. */
  readonly key: string
  /** SQL for the columns besides: status, attempts and the like. */
  readonly columns?: Readonly<Record<string, string>>
  readonly payloadBytes?: number
}

/** Rows in one statement: keeps the server's memory flat and the transaction short. */
const chunk = 100_000

/**
 * Inserts events by plain SQL, each chunk in a transaction of its own unless the caller opened one. The event ids are
 * time-ordered, as `enqueue` makes them.
 */
export async function fill(sql: Sql, { rows, key, columns = {}, payloadBytes = 200 }: FillOptions): Promise<void> {
  const names = Object.keys(columns)
  const extra = (parts: readonly string[]): string => parts.map((part) => `, ${part}`).join('')
  for (let from = 1; from <= rows; from += chunk) {
    await (sql as pg.Client).query(
      `insert into outbox.events (event_id, topic, key, payload${extra(names)})
       select uuidv7(), 'orders', ${key}, decode(repeat('7b', ${payloadBytes}), 'hex')${extra(Object.values(columns))}
       from generate_series(${from}::int, ${Math.min(rows, from + chunk - 1)}::int) n order by n`,
    )
  }
}

/** So many keys from number `from` on, each blocked: the first of its rows waits for a retry. */
export async function fillBlocked(sql: Sql, from: number, keys: number, rowsOfAKey: number): Promise<void> {
  const first = `n % ${rowsOfAKey} = 1`
  await fill(sql, {
    rows: keys * rowsOfAKey,
    key: `'blocked-' || (${from} + (n - 1) / ${rowsOfAKey})`,
    columns: {
      attempts: `(${first})::int`,
      available_at: `case when ${first} then now() + interval '1 day' end`,
    },
  })
}

/** Untried events for tomorrow. */
export async function fillScheduled(sql: Sql, rows: number, key: string): Promise<void> {
  await fill(sql, { rows, key, columns: { status: "'scheduled'", available_at: "now() + interval '1 day'" } })
}
