import type { Row, Statement } from '../contract/sql-client.ts'

/**
 * Marks the transaction. The mark goes when the transaction does, or the savepoint it was set in, and outside a
 * transaction it is gone at once.
 */
export const markStatement: Statement = { text: "set local inorder.transaction = 'open'", values: [] }

/** SQLSTATE of a guarded statement that did not find the mark. Nothing else here takes a logarithm. */
export const unmarkedState = '2201E'

/**
 * A statement that runs only where the mark was set, with its rows as the text of a record: for a client that cannot say
 * whether its transaction is still open, and whose rows come back parsed in a way that somebody else chose.
 *
 * Takes what returns rows, and INSERT, UPDATE and DELETE. Not a statement that begins with a WITH that writes: one inside
 * another is refused (0A000). Locks and indexes are those of the statement.
 *
 * - Outside the transaction the whole statement fails, so nothing of it stays. A check before it would leave a gap: with
 *   one, an event that nobody waited for was written after the ROLLBACK of its transaction, in both cases tried.
 * - One round trip for each session. The SAVEPOINT and RELEASE that it replaces are two, and leave the gap.
 * - `now()` against `statement_timestamp()` cannot tell: under the extended protocol they differ outside a transaction
 *   too.
 */
export function guardedStatement({ text, values }: Statement): Statement {
  const rows = /^\s*(insert|update|delete)\s/i.test(text) && !/\sreturning\s/i.test(text) ? `${text} returning 1` : text
  return {
    text: `with r as (${rows})
select r::text from r
where ln(case current_setting('inorder.transaction', true) when 'open' then 1::float8 else 0 end) = 0`,
    values,
  }
}

/** The columns of a record in PostgreSQL's text form: `(1,,"a ""b""")`, where nothing at all is null. */
export function readRecord(record: string): Row {
  const columns: (string | null)[] = []
  const column = /(?:"((?:[^"\\]|""|\\[^])*)"|([^",)]*))([,)])/gy
  column.lastIndex = 1
  for (;;) {
    const [, quoted, plain, end] = column.exec(record) ?? []
    if (end === undefined) throw new Error('the server returned something that is no record')
    if (quoted !== undefined) columns.push(quoted.replace(/""|\\([^])/g, (_, escaped?: string) => escaped ?? '"'))
    else columns.push(plain === '' || plain === undefined ? null : plain)
    if (end === ')') return columns
  }
}
