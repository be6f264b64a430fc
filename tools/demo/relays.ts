import type { Publisher } from '@inorder/core'
import { type MemoryBroker, memoryPublisher } from '@inorder/relay-memory'
import type pg from 'pg'
import type { Departure } from '../../test/stand/explain.ts'
import { type Member, startMember } from '../../test/stand/members.ts'
import { databaseTime, sessionsEnded } from '../../test/stand/outbox-state.ts'
import type { PublishRequest } from '../../test/stand/remote-publisher.ts'
import type { FromRelay, RelayOrders, ToRelay } from './relay-process.ts'
import type { Screen } from './screen.ts'

export interface Relays extends AsyncDisposable {
  readonly departures: readonly Departure[]
  /** Rejects when a relay ends that nobody stopped. */
  readonly failed: Promise<never>
  /** Resolves when the relay owns its first slots. */
  start(name: string): Promise<void>
  /**
   * Ends a relay between an acknowledgement and its settle: the broker takes its next run, and the relay is gone before
   * it hears so. Resolves with the number of events of that run.
   */
  kill(name: string): Promise<number>
  /** Resolves when every relay has stopped by itself. */
  stop(): Promise<void>
}

interface Running {
  readonly member: Member<ToRelay>
  readonly publisher: Publisher
  /** Set when the next run is the last one: called with its length once the broker has it and the relay is killed. */
  lastRun: ((events: number) => void) | undefined
}

type Options = Omit<RelayOrders, 'name'> & {
  readonly db: pg.Pool
  readonly broker: MemoryBroker
  readonly screen: Screen
}

const program = new URL('./relay-process.ts', import.meta.url)

/** Relays in processes of their own, all of them publishing to the one broker in this process. */
export function createRelays({ db, broker, screen, ...orders }: Options): Relays {
  const all = new Map<string, Running>()
  const departures: Departure[] = []
  const { signal } = new AbortController()
  let stopping = false
  let fail: (reason: Error) => void = () => undefined
  const failed = new Promise<never>((_, reject) => (fail = reject))
  failed.catch(() => undefined)

  async function publish(relay: Running, { call, run }: PublishRequest): Promise<void> {
    const result = await relay.publisher.publish(run, signal)
    if (relay.lastRun === undefined || result.acknowledged === 0) {
      relay.member.send({ kind: 'published', call, result })
    } else {
      relay.member.kill()
      relay.lastRun(result.acknowledged)
    }
  }

  async function start(name: string): Promise<void> {
    const publisher = memoryPublisher(broker, { name })
    await publisher.connect(signal)
    await new Promise<void>((resolve) => {
      const member = startMember<ToRelay>(program, { ...orders, name }, (given) => {
        const message = given as FromRelay
        if (message.kind === 'publish') void publish(relay, message)
        else if (message.gained > 0) {
          screen.say('relay', `${name} owns ${message.owned} of 256 slots`)
          resolve()
        }
      })
      const relay: Running = { member, publisher, lastRun: undefined }
      all.set(name, relay)
      void member.gone.then((how) => {
        all.delete(name)
        if (!stopping && relay.lastRun === undefined) fail(new Error(`${name} ended with ${how}`))
      })
    })
  }

  return {
    departures,
    failed,
    start,
    async kill(name) {
      const relay = all.get(name)
      if (relay === undefined) throw new Error(`There is no ${name}`)
      const events = await new Promise<number>((resolve) => (relay.lastRun = resolve))
      await relay.member.gone
      await sessionsEnded(db, name)
      departures.push({ relay: name, how: 'killed', at: await databaseTime(db) })
      return events
    },
    async stop() {
      stopping = true
      const rest = [...all.values()]
      for (const { member } of rest) member.send({ kind: 'stop' })
      await Promise.all(rest.map(({ member }) => member.gone))
    },
    async [Symbol.asyncDispose]() {
      stopping = true
      const rest = [...all.values()]
      for (const { member } of rest) member.kill()
      await Promise.all(rest.map(({ member }) => member.gone))
    },
  }
}
