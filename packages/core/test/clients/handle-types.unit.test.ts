import type { SqlEntityManager } from '@mikro-orm/postgresql'
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import type { Knex } from 'knex'
import type { Kysely, Transaction as KyselyTransaction } from 'kysely'
import type pg from 'pg'
import type { Sql, TransactionSql } from 'postgres'
import type { Sequelize, Transaction as SequelizeTransaction } from 'sequelize'
import type { DataSource, EntityManager, QueryRunner } from 'typeorm'
import { describe, expectTypeOf, it } from 'vitest'
import type { DrizzleTransaction, fromDrizzle } from '../../src/clients/from-drizzle.ts'
import type { fromKnex } from '../../src/clients/from-knex.ts'
import type { fromKysely } from '../../src/clients/from-kysely.ts'
import type { fromMikroOrm } from '../../src/clients/from-mikro-orm.ts'
import type { fromPg } from '../../src/clients/from-pg.ts'
import type { fromPostgresJs } from '../../src/clients/from-postgres-js.ts'
import type { fromPrisma } from '../../src/clients/from-prisma.ts'
import type { fromSequelize } from '../../src/clients/from-sequelize.ts'
import type { fromTypeOrm } from '../../src/clients/from-typeorm.ts'
import type { PrismaClient, Transaction as PrismaTransaction } from './generated-prisma.ts'

interface Tables {
  orders: { id: number }
}

type Taken<C> = C extends { session(tx: infer Tx): unknown } ? Tx : never
type Db<C> = C extends { transaction(db: infer Database, work: never): unknown } ? Database : never
type Given<C> = C extends { transaction(db: never, work: infer Work): unknown }
  ? Work extends (tx: infer Tx) => unknown
    ? Tx
    : never
  : never

type PostgresJsClient = ReturnType<typeof fromPostgresJs<Sql>>
type PrismaOutbox = ReturnType<typeof fromPrisma<PrismaClient>>
type DrizzleClient = ReturnType<typeof fromDrizzle<NodePgDatabase>>
type DrizzleGiven = Parameters<Parameters<NodePgDatabase['transaction']>[0]>[0]
type KyselyClient = ReturnType<typeof fromKysely<Kysely<Tables>>>
type KnexClient = ReturnType<typeof fromKnex<Knex>>
type TypeOrmClient = ReturnType<typeof fromTypeOrm<DataSource>>
type MikroOrmClient = ReturnType<typeof fromMikroOrm<SqlEntityManager>>
type SequelizeClient = ReturnType<typeof fromSequelize<Sequelize>>

describe('the handle that outbox.transaction gives', () => {
  it("has the library's own type", () => {
    expectTypeOf<Given<ReturnType<typeof fromPg<pg.Pool>>>>().toEqualTypeOf<Omit<pg.PoolClient, 'release'>>()
    expectTypeOf<Given<PostgresJsClient>>().toEqualTypeOf<TransactionSql>()
    expectTypeOf<Given<PrismaOutbox>>().toEqualTypeOf<PrismaTransaction>()
    expectTypeOf<Given<DrizzleClient>>().toEqualTypeOf<DrizzleGiven>()
    expectTypeOf<Given<KyselyClient>>().toEqualTypeOf<KyselyTransaction<Tables>>()
    expectTypeOf<Given<KnexClient>>().toEqualTypeOf<Knex.Transaction>()
    expectTypeOf<Given<TypeOrmClient>>().toEqualTypeOf<EntityManager>()
    expectTypeOf<Given<MikroOrmClient>>().toEqualTypeOf<SqlEntityManager>()
    expectTypeOf<Given<SequelizeClient>>().toEqualTypeOf<SequelizeTransaction>()
    // Two types that could not be resolved are equal as well.
    expectTypeOf<Given<KnexClient> | Given<DrizzleClient> | Given<MikroOrmClient>>().not.toBeAny()
    expectTypeOf<Given<PostgresJsClient> | Given<TypeOrmClient> | Given<SequelizeClient>>().not.toBeAny()
  })
})

describe('what enqueue takes', () => {
  it("is the library's transaction, and nothing else where the types can tell", () => {
    expectTypeOf<PrismaTransaction>().toExtend<Taken<PrismaOutbox>>()
    expectTypeOf<PrismaClient>().not.toExtend<Taken<PrismaOutbox>>()
    expectTypeOf<KyselyTransaction<Tables>>().toExtend<Taken<KyselyClient>>()
    expectTypeOf<Kysely<Tables>>().not.toExtend<Taken<KyselyClient>>()
    expectTypeOf<DrizzleGiven>().toExtend<DrizzleTransaction>()
    expectTypeOf<NodePgDatabase>().not.toExtend<DrizzleTransaction>()
    expectTypeOf<Sequelize>().not.toExtend<Taken<SequelizeClient>>()
    expectTypeOf<QueryRunner>().toExtend<Taken<TypeOrmClient>>()
    expectTypeOf<Knex>().not.toExtend<Taken<KnexClient>>()
  })
})

describe('what outbox.transaction begins on', () => {
  it("is what the library's own transaction begins on", () => {
    expectTypeOf<Sql>().toExtend<Db<PostgresJsClient>>()
    expectTypeOf<TransactionSql>().toExtend<Db<PostgresJsClient>>()
    expectTypeOf<PrismaClient>().toExtend<Db<PrismaOutbox>>()
    expectTypeOf<Kysely<Tables>>().toExtend<Db<KyselyClient>>()
    expectTypeOf<Knex.Transaction>().toExtend<Db<KnexClient>>()
    expectTypeOf<DataSource>().toExtend<Db<TypeOrmClient>>()
    expectTypeOf<EntityManager>().toExtend<Db<TypeOrmClient>>()
    expectTypeOf<SqlEntityManager>().toExtend<Db<MikroOrmClient>>()
    expectTypeOf<SequelizeTransaction>().toExtend<Db<SequelizeClient>>()
  })
})
