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
  /**
   * The user's transaction as a session. Sends nothing, and where it can it answers at once, so that a statement whose
   * caller forgot to wait is still sent before the COMMIT or ROLLBACK that follows.
   *
   * Throws NOT_A_TRANSACTION or NOT_IN_TRANSACTION for what is no open transaction; where only the server knows, the
   * first statement rejects with it, and nothing is written. A statement that runs here returns no `bytea`: some
   * libraries have only text to give.
   */
  session(tx: Tx): SqlSession | Promise<SqlSession>
  /**
   * Runs `work` in a transaction of the library's own on `db`, commits when it resolves and rolls back when it throws. In
   * a transaction of the caller's it is a savepoint, where the library has them. Resolves only if the server committed.
   */
  transaction<T>(db: Db, work: (tx: Given) => Promise<T>): Promise<T>
  /** Whether an error of `session` or of a statement in it says that the transaction has been rolled back already. */
  saysRolledBack?(error: unknown): boolean
}
