import type { RowSet, SqlConnection, SqlConnector, Statement } from '../../src/contract/sql-client.ts'

/** Runs a statement of the library, or does something else in its place. */
export type Around = (
  statement: Statement,
  run: () => Promise<RowSet>,
  connection: SqlConnection,
) => Promise<RowSet> | RowSet

/**
 * A client whose statements can be held, answered late or lost on their way to a real server, one at a time: what a
 * network does, where a proxy could not tell one statement from another.
 */
export function aroundStatements<C extends SqlConnector>(client: C, around: Around): C {
  return {
    ...client,
    async connect() {
      const connection = await client.connect()
      return {
        ...connection,
        run: async (statement: Statement) => around(statement, () => connection.run(statement), connection),
      }
    },
  }
}

/** What a statement is for, as its name says; the first word of one that has no name. */
export function purposeOf({ name, text }: Statement): string {
  return name?.split('_')[1] ?? text.split(/\s/, 1)[0] ?? ''
}
