import { createOutbox, fromPg, type RelaySignal } from '@inorder/core'
import { redisStreamsPublisher } from '@inorder/relay-redis-streams'
import pg from 'pg'
import { faultyPublisher, type RareFault } from './faulty-publisher.ts'
import type { FromRelay, RelayOrders, ToRelay } from './messages.ts'
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
const broker = remote ?? redisStreamsPublisher({ connection: orders.redisUrl ?? '', name: orders.name })

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
  onSignal: report,
})

function report(signal: RelaySignal): void {
  if (signal.kind === 'fault') tell({ kind: 'trouble', what: `${signal.what}: ${String(signal.cause)}` })
  else if (signal.kind === 'lease-lost') tell({ kind: 'lease-lost' })
  else if (signal.kind === 'failed')
    tell({ kind: 'trouble', what: `gave up event ${signal.event.eventId}: ${String(signal.cause)}` })
  else if (signal.kind === 'database' && !signal.ok) {
    tell({ kind: 'remark', what: `could not ${signal.use} in the database: ${String(signal.cause)}` })
  }
}

async function stop(): Promise<void> {
  await outbox.close()
  await pool.end()
  await tellParent({ kind: 'stopped', counted: relay.counts().counted } satisfies FromRelay)
  process.disconnect()
  process.exit(0)
}

process.on('message', (message: ToRelay) => {
  if (message.kind === 'published') remote?.answer(message)
  else if (message.kind === 'arm') armed.add(message.fault)
  else if (message.kind === 'granted') claims.get(message.claim)?.(message.granted)
  else void stop()
})

await relay.start()
tell({ kind: 'started' })
