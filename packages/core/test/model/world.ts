import pg from 'pg'
import { fromPg, type PgClient, type PgPool } from '../../src/clients/from-pg.ts'
import type { RelayOptions } from '../../src/options.ts'
import { createOperator, type Operator } from '../../src/operate/operator.ts'
import { createOutbox, type Outbox } from '../../src/outbox.ts'
import { pause } from '../../src/relay/pace.ts'
import { namesOf } from '../../src/storage/names.ts'
import { type Broker, createBroker } from './broker.ts'
import { type Clock, createClock } from './clock.ts'
import { createModel, type Known, type Model } from './model.ts'
import type { Scene, SlotOwner } from './observer.ts'
import type { Setup } from './script.ts'
import { createStash, type Stash } from './stash.ts'
import { steppedRelay, type SteppedRelay } from './stepped-relay.ts'
import { createTraffic, type Traffic } from './traffic.ts'

/** A database in which one script after another is played. */
export interface Theatre extends AsyncDisposable {
  readonly pool: pg.Pool
  readonly outbox: Outbox<PgClient, PgPool | PgClient>
  readonly stash: Stash
  readonly clock: Clock
  readonly writers: readonly pg.PoolClient[]
  /** A session for what nobody of the outbox does: changes by hand, looks at the tables, expired leases. */
  readonly hand: pg.PoolClient
}

/** A transaction that is open. */
export interface Writer {
  readonly client: pg.PoolClient
  readonly written: Known[]
  open: boolean
}

/** One script that is being played. */
export interface World {
  readonly theatre: Theatre
  readonly setup: Setup
  readonly model: Model
  readonly broker: Broker
  readonly scene: Scene
  readonly traffic: Traffic
  readonly operator: Operator
  readonly writers: readonly Writer[]
  /** Those that live. */
  readonly relays: SteppedRelay[]
  /** Ids under which dead relays are still registered. */
  readonly unburied: string[]
  readonly story: string[]
  /** The first thing that must not be. */
  wrong: string | undefined
  started: number
  crashes: number
  /** How often something may have changed a table. */
  changes: number
  /** What that was when the table was compared last. */
  compared: number
  /** Begins a step of the story. */
  tell(step: string): void
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** Once in so long a relay sweeps what nobody told it of; a script is over before that. */
export const sweepIntervalMs: number = 10 * dayMs

const backoff = { baseHours: 1, capHours: 2 } as const

export async function openTheatre(url: string): Promise<Theatre> {
  const pool = new pg.Pool({ connectionString: url, max: 40 })
  pool.on('error', () => undefined)
  const outbox = createOutbox({ client: fromPg(pool) })
  await outbox.migrate()
  const stash = createStash(() => fromPg(pool).connect())
  const writers = await Promise.all([1, 2, 3].map(() => pool.connect()))
  const hand = await pool.connect()
  const clock = createClock()
  return {
    pool,
    outbox,
    stash,
    clock,
    writers,
    hand,
    async [Symbol.asyncDispose]() {
      clock.restore()
      for (const client of [...writers, hand]) client.release(true)
      await stash.close()
      await outbox.close()
      await pool.end()
    },
  }
}

/** The slots stay, with nobody as their owner: 256 rows that the first relay would have to write again. */
export const emptied = `delete from outbox.events; delete from outbox.failures; delete from outbox.holds; delete from outbox.relays;
delete from outbox.audit; delete from outbox.group_topics;
update outbox.slots set owner = null, epoch = 0, released_at = null, crashes = 0, suspect = null, suspicions = '{}'
where (owner, released_at) is distinct from (null, null) or crashes > 0 or epoch > 0`

export async function openWorld(theatre: Theatre, setup: Setup): Promise<World> {
  const { pool, stash, hand, clock } = theatre
  clock.restore()
  await hand.query(emptied)
  const model = createModel({
    maxAttempts: setup.maxAttempts,
    onExhausted: setup.onExhausted,
    retain: setup.retain,
    backoffBaseHours: backoff.baseHours,
    backoffCapHours: backoff.capHours,
  })
  const story: string[] = []
  let step = 0
  const violation = (what: string): void => {
    world.wrong ??= what
  }
  const broker = createBroker({
    model,
    violation,
    say(what) {
      story.push(`     ${what}`)
    },
  })
  const client = { ...fromPg(pool), connect: () => stash.connect() }
  const session = await stash.connect()
  const scene: Scene = {
    model,
    broker,
    session,
    slots: new Map<number, SlotOwner>(),
    laneIds: new Map<string, string>(),
    crashes: () => world.crashes,
    violation,
    changed() {
      world.changes += 1
    },
  }
  const world: World = {
    theatre,
    setup,
    model,
    broker,
    scene,
    traffic: createTraffic(),
    operator: createOperator({ client, names: namesOf('outbox'), wake: () => undefined, pause }, { actor: 'a script' }),
    writers: theatre.writers.map((writer) => ({ client: writer, written: [], open: false })),
    relays: [],
    unburied: [],
    story,
    wrong: undefined,
    started: 0,
    crashes: 0,
    changes: 0,
    compared: 0,
    tell(words) {
      step += 1
      story.push(`${String(step).padStart(3)}. ${words}`)
    },
  }
  return world
}

/** Whatever a script left behind goes. */
export async function closeWorld(world: World): Promise<void> {
  for (const relay of world.relays.splice(0)) relay.die()
  await world.traffic.rest()
  for (const writer of world.writers) if (writer.open) await writer.client.query('rollback')
  await world.scene.session.close()
  world.theatre.clock.restore()
}

export async function startRelay(world: World): Promise<SteppedRelay> {
  world.started += 1
  const name = String.fromCharCode(64 + world.started)
  const relay = steppedRelay({
    name,
    scene: world.scene,
    stash: world.theatre.stash,
    traffic: world.traffic,
    options: optionsOf(world.setup),
  })
  world.relays.push(relay)
  await relay.start()
  await world.traffic.rest()
  return relay
}

/** Every time is in hours or days, so that only the clock of the script decides what is over. */
function optionsOf({ maxRun, findLimit, maxAttempts, onExhausted, retain }: Setup): Omit<RelayOptions, 'publisher'> {
  return {
    maxRun,
    findLimit,
    maxAttempts,
    onExhausted,
    retainPublishedMs: retain ? Infinity : 0,
    leaseMs: 24 * dayMs,
    sweepIntervalMs,
    publishTimeoutMs: 24 * dayMs,
    backoffBaseMs: backoff.baseHours * hourMs,
    backoffCapMs: backoff.capHours * hourMs,
    breakerMinMs: hourMs,
    breakerMaxMs: 2 * hourMs,
    random: () => 0.5,
  }
}
