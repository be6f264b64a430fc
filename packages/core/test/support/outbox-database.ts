import { freshDatabase } from '@inorder/harness'
import pg from 'pg'
import { fromPg } from '../../src/clients/from-pg.ts'
import type { SqlConnection } from '../../src/contract/sql-client.ts'
import { migrate } from '../../src/migrations/migrate.ts'
import { type Found, type FindParameters, findStatement, readFound, type Snapshot } from '../../src/storage/find.ts'
import { type Names, namesOf } from '../../src/storage/names.ts'
import { readSnapshot, snapshotStatement } from '../../src/storage/snapshot.ts'

/** A migrated outbox in a database of its own, with the statements at hand. */
export interface OutboxDatabase extends AsyncDisposable {
  readonly url: string
  readonly pool: pg.Pool
  readonly names: Names
  readonly session: SqlConnection
  connect(): Promise<pg.PoolClient>
  snapshot(): Promise<Snapshot>
  find(previous: Snapshot, changes?: Partial<FindParameters>): Promise<Found>
}

export const everySlot: readonly number[] = Array.from({ length: 256 }, (_, slot) => slot)

export async function outboxDatabase(url?: string): Promise<OutboxDatabase> {
  const address = url ?? (await freshDatabase())
  const pool = new pg.Pool({ connectionString: address, max: 40 })
  pool.on('error', () => undefined)
  const names = namesOf('outbox')
  const session = await fromPg(pool).connect()
  await migrate(session, names)
  const findSql = findStatement(names)
  return {
    url: address,
    pool,
    names,
    session,
    connect: () => pool.connect(),
    async snapshot() {
      return readSnapshot((await session.run(snapshotStatement)).rows).snapshot
    },
    async find(previous, changes = {}) {
      const parameters = {
        previous,
        arrivals: 1000,
        slots: everySlot,
        topics: null,
        lanes: [],
        lows: [],
        rowsOfALane: 100,
        busy: [],
        rows: 2000,
        ...changes,
      }
      return readFound((await session.run(findSql(parameters))).rows)
    },
    async [Symbol.asyncDispose]() {
      await session.close()
      await pool.end()
    },
  }
}

/** Something that runs SQL: a pool or a client inside a transaction. */
export type Writer = Pick<pg.Pool, 'query'> | Pick<pg.PoolClient, 'query'>

/** Inserts an event by plain SQL, as any application may. */
export async function insert(
  writer: Writer,
  key: string | null,
  payload: string,
  topic = 'orders',
): Promise<{ id: string; lane: string; eventId: string }> {
  const { rows } = await (writer as pg.Pool).query<{ id: string; lane: string; event_id: string }>(
    'insert into outbox.events (topic, key, payload) values ($1, $2, $3) returning id, lane, event_id',
    [topic, key, Buffer.from(payload)],
  )
  const [row] = rows
  if (row === undefined) throw new Error('the insert returned no row')
  return { id: row.id, lane: row.lane, eventId: row.event_id }
}

/** The payloads of an answer, lane by lane in order. */
export function payloads(found: Pick<Found, 'lanes'>, lane?: string): string {
  return found.lanes
    .filter((each) => lane === undefined || each.lane === lane)
    .flatMap(({ rows }) => rows.map(({ payload }) => Buffer.from(payload ?? []).toString()))
    .join('')
}
