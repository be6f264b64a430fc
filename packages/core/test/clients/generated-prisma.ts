import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { PrismaPg } from '@prisma/adapter-pg'
import type { ITXClientDenyList } from '@prisma/client/runtime/client'

/** What of a generated client is used here, in the types that Prisma gives every one. */
export interface PrismaClient {
  readonly orders: { create(input: { readonly data: { readonly id: bigint } }): PromiseLike<{ readonly id: bigint }> }
  $transaction<P extends PromiseLike<unknown>[]>(steps: [...P], options?: { isolationLevel?: string }): Promise<unknown>
  $transaction<R>(work: (tx: Transaction) => Promise<R>, options?: { maxWait?: number; timeout?: number }): Promise<R>
  $queryRawUnsafe<T = unknown>(query: string, ...values: unknown[]): PromiseLike<T>
  $extends(extension: object): PrismaClient
  $connect(): Promise<void>
  $disconnect(): Promise<void>
}

export type Transaction = Omit<PrismaClient, ITXClientDenyList>

export interface GeneratedPrisma extends AsyncDisposable {
  /** The module that an application imports. */
  readonly file: string
  open(options: {
    readonly adapter: PrismaPg
    readonly transactionOptions?: { readonly timeout: number }
  }): PrismaClient
}

const cache = fileURLToPath(new URL('../.cache/', import.meta.url))
const schema = `generator client {
  provider = "prisma-client"
  output   = "./client"
}
datasource db {
  provider = "postgresql"
}
model orders {
  id BigInt @id
}
`

/**
 * Generates a client where no check of the repository looks, and removes it afterwards. Prisma would download a schema
 * engine first, which this generator does not need: any program that exists will do.
 */
export async function generatePrisma(): Promise<GeneratedPrisma> {
  await mkdir(cache, { recursive: true })
  const folder = await mkdtemp(join(cache, 'prisma-'))
  await writeFile(join(folder, 'schema.prisma'), schema)
  await writeFile(
    join(folder, 'prisma.config.ts'),
    `export default { schema: './schema.prisma', datasource: { url: 'postgres://unused' } }\n`,
  )
  const manifest = createRequire(import.meta.url).resolve('prisma/package.json')
  await promisify(execFile)(process.execPath, [join(dirname(manifest), 'build/index.js'), 'generate'], {
    cwd: folder,
    env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' },
  })
  const file = join(folder, 'client/client.ts')
  const { PrismaClient } = (await import(file)) as {
    PrismaClient: new (options: object) => PrismaClient
  }
  return {
    file,
    open: (options) => new PrismaClient(options),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}
