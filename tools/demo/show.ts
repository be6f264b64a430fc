import { setTimeout as delay } from 'node:timers/promises'
import { createOutbox, fromPg } from '@inorder/core'
import { startPostgres } from '@inorder/harness'
import { type Delivery, type MemoryBroker, memoryBroker } from '@inorder/relay-memory'
import pg from 'pg'
import { countUnpublished, readEventStates } from '../../test/stand/outbox-state.ts'
import type { Evidence } from './promises.ts'
import { createRelays } from './relays.ts'
import type { Screen } from './screen.ts'
import { createShop, openShop, readLedger } from './shop.ts'

export interface Show {
  readonly evidence: Evidence
  /** Seconds from the start of the process until the broker had the first event. */
  readonly firstEventSeconds: number
}

/** How long everything may take to arrive after the shop has closed. */
const quietMs = 30_000

/** Runs the shop for so many seconds, breaks the broker and a relay meanwhile, and leaves nothing behind. */
export async function runShow(seconds: number, screen: Screen, interrupted: AbortSignal): Promise<Show> {
  const say: Screen['say'] = (what, text) => {
    screen.say(what, text)
  }
  const pause = (ms: number): Promise<void> => delay(ms, undefined, { signal: interrupted })
  say('demo', 'starting a private PostgreSQL')
  await using server = await startPostgres()
  interrupted.throwIfAborted()
  const databaseUrl = await server.createDatabase('demo')
  const db = new pg.Pool({ connectionString: databaseUrl, max: 8, application_name: 'shop' })
  db.on('error', () => undefined)
  await using _pool = atEnd(() => db.end())
  await using outbox = createOutbox({ client: fromPg(db) })
  await outbox.migrate()
  await openShop(db)
  interrupted.throwIfAborted()

  const committedAt = new Map<string, number>()
  const seen = new Set<string>()
  let firstEventSeconds = 0
  let down = false
  const broker = memoryBroker({
    onDelivery({ eventId, key, type, publisher }) {
      if (seen.size === 0) firstEventSeconds = performance.now() / 1000
      const again = seen.has(eventId)
      seen.add(eventId)
      const ms = performance.now() - (committedAt.get(eventId) ?? performance.now())
      const name = `${(key ?? '').padEnd(9)} ${(type ?? '').padEnd(15)}`
      if (again) say('again', `${name} by ${publisher}: a duplicate, which a consumer drops by its event id`)
      else
        say('delivered', screen.faint(`${name} by ${publisher}, ${ms < 1 ? '1' : ms.toFixed(0)} ms after its commit`))
    },
  })
  const timing = { leaseMs: seconds < 10 ? 1000 : 2000, backoffMs: 400 }
  await using relays = createRelays({ db, databaseUrl, broker, screen, ...timing })
  const starting = [relays.start('relay-A'), relays.start('relay-B')]
  await race(Promise.race([...starting, relays.failed]), interrupted)

  const shop = createShop({
    db,
    outbox,
    everyMs: 220,
    onCommitted({ eventIds, text }) {
      for (const eventId of eventIds) committedAt.set(eventId, performance.now())
      if (down) say('committed', `${text}, waits for the broker`)
    },
    onRolledBack: (text) => say('rolled back', `payment declined: ${text} never happened`),
  })
  const closing = new AbortController()
  const open = AbortSignal.any([closing.signal, interrupted])
  say('demo', 'the shop opens, two tills write')
  const tills = Promise.all([shop.write('till-1', open), shop.write('till-2', open)])
  await using _tills = atEnd(async () => {
    closing.abort()
    await tills
  })
  const script = play()
  // A till or a relay that fails ends the show at once.
  await Promise.race([script, tills.then(() => script), relays.failed])

  async function play(): Promise<{ outage: Evidence['outage']; poison: Evidence['poison'] }> {
    const total = seconds * 1000
    const opened = performance.now()
    const at = (share: number): Promise<void> => pause(Math.max(0, opened + share * total - performance.now()))
    await at(0.2)
    const outage = await breakBroker(Math.min(2000, total * 0.2))
    await race(Promise.all(starting), interrupted)
    await at(0.45)
    await killRelay()
    await at(0.7)
    const poison = await poisonKey()
    await at(1)
    return { outage, poison }
  }

  async function breakBroker(ms: number): Promise<Evidence['outage']> {
    say('fault', `the broker takes nothing for ${(ms / 1000).toFixed(1)} s`)
    down = true
    const began = performance.now()
    const fault = broker.unavailable()
    await pause(ms)
    const waited = await countUnpublished(db)
    fault.end()
    down = false
    const lasted = performance.now() - began
    say('healed', `the broker is back, ${waited} events have waited`)
    await until(broker, () => [...committedAt.keys()].every((eventId) => seen.has(eventId)), interrupted)
    const states = await readEventStates(db)
    const attempts = states.reduce((sum, state) => sum + state.attempts, 0)
    const failed = states.filter(({ status }) => status === 'failed' || status === 'held').length
    say('healed', `all of them went out, attempts spent: ${attempts}`)
    return { ms: lasted, waited, attempts, failed }
  }

  async function killRelay(): Promise<void> {
    say('fault', 'relay-B is killed after the broker has its next events and before the database knows')
    const events = await race(relays.kill('relay-B'), interrupted)
    say('fault', `relay-B is gone with ${events} in flight; its share waits for its lease of ${timing.leaseMs} ms`)
    await race(relays.start('relay-C'), interrupted)
  }

  async function poisonKey(): Promise<Evidence['poison']> {
    let poisoned: { key: string; eventId: string; at: number } | undefined
    const fault = broker.reject(
      ({ topic, key, eventId }) => {
        if (topic !== 'stock' || key === null) return false
        if (poisoned === undefined) {
          poisoned = { key, eventId, at: performance.now() }
          say('fault', `the broker rejects ${key} twice; its later events wait behind it`)
        }
        return poisoned.eventId === eventId
      },
      { times: 2 },
    )
    const from = broker.count
    await until(broker, () => poisoned !== undefined && seen.has(poisoned.eventId), interrupted)
    const { key = '', eventId = '', at = 0 } = poisoned ?? {}
    const since = broker.deliveries.slice(from).filter((delivery) => delivery.at > at)
    const own = since.find((delivery: Delivery) => delivery.eventId === eventId)
    const others = since.filter((delivery) => delivery.key !== key && delivery.at < (own?.at ?? 0)).length
    say('healed', `${key} went out, ${others} events of other keys did not wait for it`)
    return { key, ms: (own?.at ?? at) - at, rejections: fault.hits, others }
  }

  const { outage, poison } = await script
  closing.abort()
  await tills
  say('demo', 'the shop closes, the rest goes out')
  const deadline = performance.now() + quietMs
  while ((await countUnpublished(db)) > 0 && performance.now() < deadline) await pause(20)
  await race(relays.stop(), interrupted)
  return {
    firstEventSeconds,
    evidence: {
      ledger: await readLedger(db),
      rolledBack: shop.rolledBack,
      deliveries: broker.deliveries,
      states: await readEventStates(db),
      departures: relays.departures,
      outage,
      poison,
    },
  }
}

function atEnd(end: () => Promise<void>): AsyncDisposable {
  return { [Symbol.asyncDispose]: end }
}

/** Resolves when the broker's deliveries make it true. */
function until(broker: MemoryBroker, predicate: () => boolean, signal: AbortSignal): Promise<void> {
  return broker.until(predicate, { signal: AbortSignal.any([signal, AbortSignal.timeout(quietMs)]) })
}

/** Waits for the promise, or throws what the signal aborted with. */
async function race<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  const { promise: aborted, stop } = abortOf(signal)
  try {
    return await Promise.race([promise, aborted])
  } finally {
    stop()
  }
}

function abortOf(signal: AbortSignal): { promise: Promise<never>; stop: () => void } {
  let listener = (): void => undefined
  const promise = new Promise<never>((_, reject) => {
    listener = () => {
      reject(signal.reason as Error)
    }
    signal.addEventListener('abort', listener, { once: true })
  })
  return { promise, stop: () => signal.removeEventListener('abort', listener) }
}
