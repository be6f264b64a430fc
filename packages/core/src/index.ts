// The public surface. Nothing else of this package may be imported from outside.

// Everyone
export { createOutbox, type Outbox } from './outbox.ts'
export type { OutboxOptions, RelayOptions } from './options.ts'
export {
  type ClientOf,
  fromPg,
  type PgClient,
  type PgConnection,
  type PgPool,
  type PgPoolClient,
  type PgQuery,
  type PgResult,
} from './clients/from-pg.ts'
export {
  fromPostgresJs,
  type PostgresJs,
  type PostgresJsTransaction,
  type PostgresJsTransactionOf,
} from './clients/from-postgres-js.ts'
export type { PostgresJsFactory, PostgresJsSession } from './clients/postgres-js-session.ts'
export { fromPrisma, type PrismaDb, type PrismaTransaction, type PrismaTransactionOf } from './clients/from-prisma.ts'
export {
  type DrizzleDb,
  type DrizzleTransaction,
  type DrizzleTransactionOf,
  fromDrizzle,
} from './clients/from-drizzle.ts'
export { fromKysely, type KyselyDb, type KyselyTransaction, type KyselyTransactionOf } from './clients/from-kysely.ts'
export { fromKnex, type KnexDb, type KnexTransactionOf } from './clients/from-knex.ts'
export type { KnexQuery, KnexTransaction } from './clients/knex-session.ts'
export {
  fromTypeOrm,
  type TypeOrmDataSource,
  type TypeOrmDb,
  type TypeOrmEntityManager,
  type TypeOrmManagerOf,
  type TypeOrmQueryRunner,
} from './clients/from-typeorm.ts'
export { fromMikroOrm, type MikroOrmEntityManager } from './clients/from-mikro-orm.ts'
export {
  fromSequelize,
  type SequelizeDb,
  type SequelizeTransaction,
  type SequelizeTransactionOf,
} from './clients/from-sequelize.ts'
export { OutboxError, type OutboxErrorCode, type Problem } from './contract/errors.ts'

// Writing
export type { Enqueued, EnqueueOptions } from './write/enqueue.ts'
export type { InputFor, TypedInput } from './write/typed-event.ts'
export type { EventInput } from './write/validate-event.ts'
export type { MigrationResult } from './migrations/migrate.ts'

// Naming events once, for writing and for consuming
export {
  type DecodedEvent,
  defineEvents,
  type DefinitionsOf,
  type EncodedEvent,
  type EventDefinition,
  type EventRegistry,
  type EventSchemas,
  type Parse,
} from './contract/event-registry.ts'
export type { InputOf, OutputOf, StandardIssue, StandardResult, StandardSchema } from './contract/standard-schema.ts'

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

// Consuming
export { createInbox, type Inbox, type InboxOptions, type InboxPurgeOptions, type Processed } from './consume/inbox.ts'
export type { Claim } from './storage/claim-event.ts'
export { permanent, retryAt, retryIn, transient } from './consume/handler-answer.ts'
export {
  type Handler,
  type HandlerContext,
  handlerPublisher,
  type HandlerPublisherOptions,
  type Handlers,
  type HandlersOf,
} from './consume/handler-publisher.ts'

// Operating
export type { Operator, OperatorOptions } from './operate/operator.ts'
export type {
  CommonFilter,
  DiscardFilter,
  FailedFilter,
  FailureFilter,
  ReplayFilter,
  RequeueFilter,
  RescheduleFilter,
} from './operate/filter.ts'
export type { VerbOptions, VerbProgress, VerbReport } from './operate/verb-options.ts'
export type { ReplayReport, RescheduleOptions } from './operate/verbs.ts'
export type { HoldOptions, HoldReport, ReleaseOptions } from './operate/holds.ts'
export type { Count, Counts, CountsOptions, StateCounts } from './operate/counts.ts'
export type { PurgeOptions, PurgeReport } from './operate/purge.ts'
export type { OrderingReport, SetOrderingOptions } from './operate/set-ordering.ts'
export type { HoldTarget } from './storage/hold-lane.ts'
export type { LaterPublished } from './storage/count-later-published.ts'

// Writing an adapter
export { coalesce, type CoalesceOptions, type Submit } from './contract/coalesce.ts'
export { type FirstAbort, firstAbort, orAbort } from './contract/first-abort.ts'
export { readWireHeaders, wireHeaders, type WireEvent } from './contract/wire.ts'
export {
  checkOptions,
  choiceOption,
  flagOption,
  functionOption,
  listOption,
  nameOption,
  numberOption,
  objectOption,
  optionProblems,
  type OptionRule,
  type OptionTable,
  refuseProblems,
  required,
  textOption,
} from './contract/option-table.ts'
export type {
  Row,
  RowSet,
  SqlClient,
  SqlConnection,
  SqlConnector,
  SqlSession,
  Statement,
} from './contract/sql-client.ts'
