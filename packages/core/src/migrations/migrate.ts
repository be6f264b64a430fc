import type { SqlSession } from '../contract/sql-client.ts'
import type { Names } from '../storage/names.ts'
import { history } from './history.ts'
import type { Migration } from './migration.ts'

export interface MigrationResult {
  /** The steps that this call ran, in order; empty when the schema was up to date. */
  readonly applied: readonly string[]
}

/**
 * Brings the schema up to date, one transaction per step. Safe to call from every process at every start: whoever
 * comes second waits for the first and then finds nothing left to do. A step that died in the middle is run again.
 */
export async function migrate(session: SqlSession, names: Names): Promise<MigrationResult> {
  const applied: string[] = []
  await inTransaction(session, names, () => Promise.resolve(true))
  for (const step of history) {
    const ran = step.transactional
      ? await inTransaction(session, names, async (done) => {
          if (done.has(step.name)) return false
          for (const text of step.statements(names)) await run(session, text)
          await run(session, recordSql(names, step))
          return true
        })
      : await runOutside(session, names, step)
    if (ran) applied.push(step.name)
  }
  return { applied }
}

/** The same steps as text, for people who own their schema and run it with another tool. */
export function migrationSql(names: Names): string {
  // As JSON, because a line break in a name would end the comment.
  const parts = [`-- Inorder schema ${JSON.stringify(names.schema)}: run each part once, in this order.`]
  for (const statement of foundationSql(names)) parts.push(`${statement};`)
  for (const step of history) {
    const statements = [...step.statements(names), recordSql(names, step)].map((statement) => `${statement};`)
    parts.push(
      step.transactional
        ? [`-- ${step.name}`, 'begin;', ...statements, 'commit;'].join('\n')
        : [`-- ${step.name}: outside a transaction`, ...statements].join('\n'),
    )
  }
  return `${parts.join('\n\n')}\n`
}

async function runOutside(session: SqlSession, names: Names, step: Migration): Promise<boolean> {
  const done = await inTransaction(session, names, (recorded) => Promise.resolve(recorded.has(step.name)))
  if (done) return false
  for (const text of step.statements(names)) await run(session, text)
  await inTransaction(session, names, () => run(session, recordSql(names, step)))
  return true
}

/**
 * Every step holds the same transaction-scoped lock, which a transaction pooler keeps intact. READ COMMITTED whatever the
 * default is: at a higher level the snapshot is older than the lock, and whoever waited would not see what is done.
 */
async function inTransaction<T>(
  session: SqlSession,
  names: Names,
  work: (done: ReadonlySet<string>) => Promise<T>,
): Promise<T> {
  await run(session, 'begin isolation level read committed')
  try {
    await session.run({
      text: 'select pg_advisory_xact_lock(hashtextextended($1, 7))',
      values: [`inorder:${names.schema}`],
    })
    for (const text of foundationSql(names)) await run(session, text)
    const { rows } = await run(session, `select name from ${names.table('migrations')}`)
    const result = await work(new Set(rows.map(([name]) => String(name))))
    await run(session, 'commit')
    return result
  } catch (error) {
    await run(session, 'rollback').catch(() => undefined)
    throw error
  }
}

function foundationSql(names: Names): readonly string[] {
  return [
    `create schema if not exists ${names.quotedSchema}`,
    `create table if not exists ${names.table('migrations')} (name text primary key, applied_at timestamptz not null default now())`,
  ]
}

function recordSql(names: Names, step: Migration): string {
  return `insert into ${names.table('migrations')} (name) values ('${step.name}') on conflict do nothing`
}

function run(session: SqlSession, text: string): ReturnType<SqlSession['run']> {
  return session.run({ text, values: [] })
}
