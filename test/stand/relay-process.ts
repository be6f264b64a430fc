import { setTimeout as delay } from 'node:timers/promises'
import { createOutbox, fromPg, OutboxError, type RelaySignal } from '@inorder/core'
import { redisStreamsPublisher } from '@inorder/relay-redis-streams'
import pg from 'pg'
import { faultyPublisher, type RareFault } from './faulty-publisher.ts'
import { lyingPublisher } from './lying-publisher.ts'
import type { FromRelay, Look, RelayOrders, ToRelay } from './messages.ts'
import { liveWithParent, readOrders, tellParent } from './parent-channel.ts'
import { remotePublisher } from './remote-publisher.ts'

// One relay in a process of its own, as an application would run it, with a publisher that fails on purpose.

liveWithParent()
const orders = readOrders() as RelayOrders
const armed = new Set<RareFault>()
const claims = new Map<number, (granted: boolean) => void>()
let lastClaim = 0

function tell(message: FromRelay): void {
  void tellParent(message)
}

const remote = orders.redisUrl === undefined ? remotePublisher('memory', tell) : undefined
const honest = remote ?? redisStreamsPublisher({ connection: orders.redisUrl ?? '', name: orders.name })
const broker = orders.lies === undefined ? honest : lyingPublisher(honest, orders.seed, orders.lies)

/** Several relays may claim the same fault at once; the parent gives it to one. */
async function claim(fault: RareFault, eventIds: readonly string[]): Promise<boolean> {
  armed.delete(fault)
  const number = ++lastClaim
  const granted = new Promise<boolean>((resolve) => claims.set(number, resolve))
  tell({ kind: 'claim', claim: number, fault, eventIds })
  return granted
}

async function rareFault(eventIds: readonly string[]): Promise<'lost-ack' | undefined> {
  // Whoever is granted its own death never hears another word: the parent kills it in this very moment.
  if (armed.has('kill') && (await claim('kill', eventIds))) return new Promise(() => undefined)
  return armed.has('lost-ack') && (await claim('lost-ack', eventIds)) ? 'lost-ack' : undefined
}

const pool = new pg.Pool({ connectionString: orders.databaseUrl, max: 8, application_name: orders.name })
pool.on('error', () => undefined)
const outbox = createOutbox({ client: fromPg(pool) })
const relay = outbox.relay({
  publisher: faultyPublisher(broker, {
    seed: orders.seed,
    relay: orders.name,
    rejected: orders.rejected,
    die: () => process.kill(process.pid, 'SIGKILL'),
    unavailable: orders.unavailable,
    onAnswer: (answer) => tell({ kind: 'answered', ...answer }),
    rareFault,
  }),
  maxRun: orders.maxRun,
  leaseMs: orders.leaseMs,
  backoffBaseMs: orders.backoffMs,
  backoffCapMs: orders.backoffMs * 20,
  breakerMinMs: 20,
  breakerMaxMs: 200,
  ...orders.relayOptions,
  onSignal: report,
})
let leaseHeld = false
let stopping = false
/** Resources that the channel to the parent needs; everything else is to be gone when the relay has stopped. */
const ownResources = countResources()

function report(signal: RelaySignal): void {
  if (signal.kind === 'fault') tell({ kind: 'trouble', what: `${signal.what}: ${String(signal.cause)}` })
  else if (signal.kind === 'lease-lost') tell({ kind: 'lease-lost' })
  else if (signal.kind === 'failed') tell({ kind: 'failed', eventId: signal.event.eventId, why: String(signal.cause) })
  else if (signal.kind === 'database' && !signal.ok) {
    tell({ kind: 'remark', what: `could not ${signal.use} in the database: ${String(signal.cause)}` })
  }
}

/** The signal comes only when the relay has heard of it from the database, which may be later than others acted on it. */
function watchLease(): void {
  const { leaseHolds } = relay.health()
  if (leaseHeld && !leaseHolds && !stopping) tell({ kind: 'lease-lost' })
  leaseHeld = leaseHolds
}

function look(): Look {
  const { lanesInFlight, eventsInFlight, slots, leaseHolds } = relay.health()
  globalThis.gc?.()
  const heap = process.memoryUsage().heapUsed
  return { lanes: lanesInFlight, events: eventsInFlight, slots, leaseHolds, heap }
}

function countResources(): Map<string, number> {
  const counts = new Map<string, number>()
  for (const name of process.getActiveResourcesInfo()) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

/** A socket that was ended takes a moment to be gone, so what is left is asked for a while. */
async function leftovers(): Promise<string[]> {
  for (let tries = 0; ; tries++) {
    const left = [...countResources()].filter(([name, count]) => count > (ownResources.get(name) ?? 0))
    if (left.length === 0 || tries === 100) return left.map(([name]) => name)
    await delay(10)
  }
}

async function stop(): Promise<void> {
  watchLease()
  stopping = true
  clearInterval(leaseWatch)
  await outbox.close()
  await pool.end()
  const stopped = { kind: 'stopped', counted: relay.counts().counted, leaseHeld, left: await leftovers() } as const
  await tellParent(stopped satisfies FromRelay)
  process.disconnect()
  process.exit(0)
}

process.on('message', (message: ToRelay) => {
  if (message.kind === 'published') remote?.answer(message)
  else if (message.kind === 'arm') armed.add(message.fault)
  else if (message.kind === 'granted') claims.get(message.claim)?.(message.granted)
  else if (message.kind === 'look') tell({ kind: 'looked', ...look() })
  else void stop()
})

const leaseWatch = setInterval(watchLease, 20)

/** As a supervisor does: a database that is not there yet is no reason to give up. */
async function startAtLast(): Promise<void> {
  for (;;) {
    try {
      await relay.start()
      return
    } catch (error) {
      if (error instanceof OutboxError && error.code !== 'DATABASE_UNREACHABLE') throw error
      tell({ kind: 'remark', what: `could not start: ${String(error)}` })
      await delay(200)
    }
  }
}

await startAtLast()
tell({ kind: 'started' })
