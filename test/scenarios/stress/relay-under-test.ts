import type {
  FailureKind,
  Outbox,
  OutboxEvent,
  Publisher,
  Relay,
  RelayOptions,
  SqlClient,
  SqlConnection,
} from '@inorder/core'
import { createOutbox, fromPg, type PgClient, type PgPool } from '@inorder/core'
import type pg from 'pg'
import { setTimeout as delay } from 'node:timers/promises'
import type { History } from './history.ts'
import type { Random } from '../../stand/random.ts'

/** A relay that can be killed: its connections break, nothing more reaches the broker, and it cannot say goodbye. */
export interface RelayUnderTest {
  readonly name: string
  readonly relay: Relay
  /** Server process ids of its connections. */
  backends(): number[]
  kill(): void
  stop(): Promise<void>
}

export interface Faults {
  readonly rejected: number
  readonly lostAcknowledgement: number
}

export function relayUnderTest(
  name: string,
  pool: pg.Pool,
  history: History,
  random: Random,
  faults: Faults,
  options: Partial<RelayOptions>,
  alter: (client: SqlClient<PgClient, PgPool | PgClient>) => SqlClient<PgClient, PgPool | PgClient> = (client) =>
    client,
): RelayUnderTest {
  let dead = false
  const open = new Set<SqlConnection>()
  const backends = new Map<SqlConnection, number>()
  const base = alter(fromPg(pool))
  const client: typeof base = {
    ...base,
    async connect() {
      if (dead) throw new Error('this relay is dead')
      const connection = await base.connect()
      open.add(connection)
      const { rows } = await connection.run({ text: 'select pg_backend_pid()', values: [] })
      backends.set(connection, Number(rows[0]?.[0]))
      void connection.ended.then(() => {
        open.delete(connection)
        backends.delete(connection)
      })
      return connection
    },
  }
  const publisher = randomPublisher(name, history, random, faults, () => dead)
  const outbox: Outbox<PgClient, PgPool | PgClient> = createOutbox({ client })
  const relay = outbox.relay({
    publisher,
    leaseMs: 1500,
    backoffBaseMs: 40,
    backoffCapMs: 120,
    maxAttempts: 3,
    ...options,
  })
  return {
    name,
    relay,
    backends: () => [...backends.values()],
    kill() {
      dead = true
      for (const connection of open) void connection.close()
    },
    async stop() {
      await relay.stop({ graceMs: dead ? 0 : 10_000 })
      await outbox.close()
    },
  }
}

/** Takes a millisecond per run, rejects some events and loses the acknowledgement of others. */
function randomPublisher(
  name: string,
  history: History,
  random: Random,
  faults: Faults,
  dead: () => boolean,
): Publisher {
  const failure = (kind: FailureKind, text: string): { kind: FailureKind; cause: Error } => ({
    kind,
    cause: new Error(text),
  })
  return {
    name,
    capabilities: {
      maxEventBytes: 1e7,
      maxRun: 1000,
      order: 'key',
      dedupe: { by: 'none', windowMs: 0 },
      fence: 'same-relay',
      tombstones: true,
      headers: true,
      confirms: 'memory',
    },
    connect: () => Promise.resolve(),
    destination: ({ topic }: OutboxEvent) => topic,
    async publish(run) {
      await delay(1)
      let acknowledged = 0
      for (const { eventId } of run) {
        if (dead()) return { acknowledged, failure: failure('unknown', 'dead') }
        if (random.chance(faults.rejected)) return { acknowledged, failure: failure('rejected', 'rejected at random') }
        const lost = random.chance(faults.lostAcknowledgement)
        history.delivered(eventId, name, lost)
        if (lost) return { acknowledged, failure: failure('unknown', 'the acknowledgement was lost') }
        acknowledged += 1
      }
      return { acknowledged }
    },
    check: () => Promise.resolve({ ok: true, findings: [] }),
    close: () => Promise.resolve(),
  }
}
