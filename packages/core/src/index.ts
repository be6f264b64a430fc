// The public surface. Nothing else of this package may be imported from outside.

// Everyone
export { createOutbox, type Outbox } from './outbox.ts'
export type { OutboxOptions, RelayOptions } from './options.ts'
export {
  type ClientOf,
  fromPg,
  type PgClient,
  type PgPool,
  type PgPoolClient,
  type PgQuery,
  type PgResult,
} from './clients/from-pg.ts'
export { OutboxError, type OutboxErrorCode, type Problem } from './contract/errors.ts'

// Writing
export type { Enqueued } from './write/enqueue.ts'
export type { EventInput } from './write/validate-event.ts'
export type { MigrationResult } from './migrations/migrate.ts'

// Publishing
export type { Relay, RelayCounts } from './relay/relay.ts'
export type { RelayHealth } from './relay/relay-health.ts'
export type { RelaySignal, SignalEvent } from './contract/signals.ts'
export { type OutboxEvent, type Ordering, type Serialize, wireNames } from './contract/event.ts'
export type {
  Failure,
  FailureKind,
  Finding,
  Health,
  Publisher,
  PublisherCapabilities,
  Receipt,
  Rejection,
  RunResult,
} from './contract/publisher.ts'

// Writing an adapter
export {
  checkOptions,
  choiceOption,
  flagOption,
  functionOption,
  listOption,
  numberOption,
  objectOption,
  optionProblems,
  type OptionRule,
  type OptionTable,
  refuseProblems,
  required,
  textOption,
} from './contract/option-table.ts'
export type { Row, RowSet, SqlClient, SqlConnection, SqlSession, Statement } from './contract/sql-client.ts'
