import type { RowSet, Statement } from '../contract/sql-client.ts'

/** The part of a `pg` client that runs statements; a `Client` and a `PoolClient` both have it. */
export interface PgClient {
  query(config: PgQuery): Promise<PgResult>
  getTransactionStatus?(): string | null
}

export interface PgQuery {
  readonly name?: string
  readonly text: string
  readonly values: unknown[]
  readonly rowMode: 'array'
  readonly types: { getTypeParser(type: number): (text: string) => unknown }
}

export interface PgResult {
  readonly command: string
  readonly rows: unknown[][]
  readonly rowCount: number | null
}

export function queryPg(client: PgClient, { name, text, values }: Statement): Promise<PgResult> {
  return client.query({ ...(name === undefined ? {} : { name }), text, values: [...values], ...asText })
}

export async function runPg(client: PgClient, statement: Statement): Promise<RowSet> {
  return rowsOf(await queryPg(client, statement))
}

export function rowsOf({ rows, rowCount }: PgResult): RowSet {
  return { rows: rows as RowSet['rows'], affected: rowCount ?? 0 }
}

const byteaType = 17

/** Leaves every value as the server's text, whatever parsers the application has set for itself. */
export const asText: Pick<PgQuery, 'rowMode' | 'types'> = {
  rowMode: 'array',
  types: { getTypeParser: (type) => (type === byteaType ? bytesOf : same) },
}

function same(text: string): string {
  return text
}

/** A role may have `bytea_output = 'escape'`; no statement relies on a setting of the session. */
export function bytesOf(text: string): Uint8Array {
  if (text.startsWith('\\x')) return Buffer.from(text.slice(2), 'hex')
  const unescaped = text.replace(/\\(\\|[0-7]{3})/g, (_, escape: string) =>
    escape === '\\' ? escape : String.fromCharCode(Number.parseInt(escape, 8)),
  )
  return Buffer.from(unescaped, 'latin1')
}
