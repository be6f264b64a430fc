/** A statement with its values; `name` asks for a prepared statement. Only files under `storage/` make them. */
export interface Statement {
  readonly name?: string
  readonly text: string
  readonly values: readonly unknown[]
}

/** A row with every column as the server's text, except `bytea`, which is bytes. Column order as selected. */
export type Row = readonly (string | Uint8Array | null)[]

export interface RowSet {
  readonly rows: readonly Row[]
  readonly affected: number
}

/** Something that runs one statement at a time on one session. */
export interface SqlSession {
  run(statement: Statement): Promise<RowSet>
}

/** A session the library owns until it closes it. */
export interface SqlConnection extends SqlSession {
  /** Resolves with the reason when the session ends by itself, and with undefined after `close`. */
  readonly ended: Promise<Error | undefined>
  /** Calls back for each notification on a channel this session listens to. Absent where the client cannot. */
  onNotification?(listener: (channel: string) => void): void
  /** Ends the session without waiting for a statement that is on its way. */
  close(): Promise<void>
}

/** Opens sessions that the library owns. */
export interface SqlConnector {
  /** How many sessions there can be at once, where that is limited. */
  readonly maxSessions?: number
  connect(): Promise<SqlConnection>
}

/**
 * What the library needs of a PostgreSQL client library. `Tx` is the transaction handle that the user passes to
 * `enqueue`, `Db` what the user passes to `transaction`, and `Given` the handle that `transaction` passes on.
 */
export interface SqlClient<Tx, Db = Tx, Given extends Tx = Tx> extends SqlConnector {
  readonly name: string
  /** The user's transaction as a session. Rejects with NOT_A_TRANSACTION or NOT_IN_TRANSACTION before anything is written. */
  session(tx: Tx): Promise<SqlSession>
  /** Runs `work` between BEGIN and COMMIT on a session of `db`, and ROLLBACK when it throws. */
  transaction<T>(db: Db, work: (tx: Given) => Promise<T>): Promise<T>
}
