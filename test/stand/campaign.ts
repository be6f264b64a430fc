import { setTimeout as delay } from 'node:timers/promises'
import { createOutbox, fromPg } from '@inorder/core'
import { startPostgres, startRedis } from '@inorder/harness'
import pg from 'pg'
import { createCrew } from './crew.ts'
import { createLedger, readWritten } from './ledger.ts'
import { type Member, startMember } from './members.ts'
import type { FromWriter, WriterOrders } from './messages.ts'
import { countUnpublished, readEventStates } from './outbox-state.ts'
import { memoryStandBroker, redisStandBroker } from './stand-broker.ts'
import type { StandOptions } from './stand-options.ts'
import type { Evidence } from './verdict.ts'

/** How often the outbox is asked whether anything is left, and the line of progress is a multiple of it. */
const lookMs = 100

/** Runs one stand from the first server to the last reading, and leaves nothing behind. */
export async function runCampaign(
  options: StandOptions,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<Evidence> {
  say(`starting PostgreSQL${options.publisher === 'redis' ? ' and Redis' : ''}, seed ${options.seed}`)
  await using server = await startPostgres()
  signal.throwIfAborted()
  await using broker = options.publisher === 'redis' ? redisStandBroker(await startRedis()) : memoryStandBroker()
  signal.throwIfAborted()
  const databaseUrl = await server.createDatabase('stand')
  const db = new pg.Pool({ connectionString: databaseUrl, max: 8, application_name: 'stand' })
  db.on('error', () => undefined)
  await using _pool = atEnd(() => db.end())
  await createOutbox({ client: fromPg(db) }).migrate()
  await createLedger(db, options.keys)

  const crew = createCrew(options, { db, databaseUrl, broker, say })
  await using _relays = atEnd(() => crew.kill())
  await abortable(crew.start(), signal)
  say(`${options.relays} relays are at work, ${options.writers} writers begin`)
  const began = performance.now()
  const writers = startWriters(options, databaseUrl)
  await using _writers = atEnd(() => writers.kill())

  const progress = (): string =>
    `written ${writers.committed}  acknowledged ${crew.acknowledged}  rejected ${crew.answers.rejected}  ` +
    `unavailable ${crew.answers.unavailable}  unknown ${crew.answers.unknown}`
  const deadline = began + options.timeout * 1000
  let nextLine = began + 1000
  while (performance.now() < deadline) {
    const written = writers.running === 0
    if (written && (await countUnpublished(db)) === 0) break
    if (performance.now() >= nextLine) {
      say(progress())
      nextLine += 1000
    }
    await delay(lookMs, undefined, { signal })
  }
  const seconds = Math.round((performance.now() - began) / 10) / 100
  say(progress())
  await abortable(crew.settled(), signal)
  await abortable(crew.stop(), signal)
  return {
    options,
    written: await readWritten(db),
    arrivals: await broker.read(),
    states: await readEventStates(db),
    answers: crew.answers,
    departures: crew.departures,
    lostAcks: crew.lostAcks,
    troubles: [...crew.troubles, ...writers.troubles],
    seconds,
  }
}

function atEnd(end: () => Promise<void>): AsyncDisposable {
  return { [Symbol.asyncDispose]: end }
}

const writerProgram = new URL('./writer-process.ts', import.meta.url)

interface Writers {
  readonly committed: number
  readonly running: number
  readonly troubles: readonly string[]
  kill(): Promise<void>
}

function startWriters({ writers: count, events, keys, seed }: StandOptions, databaseUrl: string): Writers {
  const members = new Set<Member<never>>()
  const troubles: string[] = []
  let committed = 0
  for (let index = 0; index < count; index++) {
    const name = `writer-${index + 1}`
    const share = Math.floor(events / count) + (index < events % count ? 1 : 0)
    const orders: WriterOrders = { name, databaseUrl, seed, events: share, keys }
    const member = startMember<never>(writerProgram, orders, (given) => {
      const message = given as FromWriter
      if (message.kind === 'committed') committed += message.events
    })
    members.add(member)
    void member.gone.then((how) => {
      members.delete(member)
      if (how !== '0') troubles.push(`${name} ended with ${how}`)
    })
  }
  return {
    get committed() {
      return committed
    },
    get running() {
      return members.size
    },
    troubles,
    async kill() {
      const all = [...members]
      for (const member of all) member.kill()
      await Promise.all(all.map(({ gone }) => gone))
    },
  }
}

/** Waits for the promise, or throws what the signal aborted with. */
async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  let giveUp = (): void => undefined
  const aborted = new Promise<never>((_, reject) => {
    giveUp = () => {
      reject(signal.reason as Error)
    }
    signal.addEventListener('abort', giveUp, { once: true })
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
}
