// The public surface. Nothing else of this package may be imported from outside.
export * from './contract/errors.ts'
export * from './contract/event.ts'
export * from './contract/publisher.ts'
export type { Row, RowSet, SqlClient, SqlConnection, SqlSession, Statement } from './contract/sql-client.ts'
