import type pg from 'pg'
import { type AnswerCounts, countAnswers } from './attempts.ts'
import type { Departure, LostAcknowledgement } from './explain.ts'
import type { RareFault } from './faulty-publisher.ts'
import type { Member } from './members.ts'
import type { FromRelay, RelayOrders, ToRelay } from './messages.ts'
import { type RelayNews, startRelay } from './relay-member.ts'
import { databaseTime, sessionsEnded } from './outbox-state.ts'
import type { StandBroker } from './stand-broker.ts'
import type { StandOptions } from './stand-options.ts'

/** The relay processes of a stand: who they are, what they answered, and what befell them. */
export interface Crew {
  readonly answers: AnswerCounts
  /** Relays that were killed, and those that lost their lease. */
  readonly departures: readonly Departure[]
  readonly lostAcks: readonly LostAcknowledgement[]
  /** What should not have happened. */
  readonly troubles: readonly string[]
  /** Different events that were acknowledged to some relay. */
  readonly acknowledged: number
  /** Starts the relays; resolves when all of them are at work. */
  start(): Promise<void>
  /** Resolves when the killed ones are replaced and every departure is noted. */
  settled(): Promise<void>
  /** Resolves when every relay has stopped by itself, with how many failures they counted. */
  stop(): Promise<void>
  /** Ends what still runs. */
  kill(): Promise<void>
}

const maxRuns = [1, 5, 20, 5] as const

export function createCrew(
  options: StandOptions,
  parts: { db: pg.Pool; databaseUrl: string; broker: StandBroker; say: (line: string) => void },
): Crew {
  const { broker, db, say } = parts
  const answers = countAnswers()
  const acknowledged = new Set<string>()
  const members = new Map<string, Member<ToRelay>>()
  const departures: Departure[] = []
  const lostAcks: LostAcknowledgement[] = []
  const troubles: string[] = []
  const pending: Promise<void>[] = []
  const dying = new Set<string>()
  const plan = planFaults(options)
  let started = 0
  let stopping = false

  async function startOne(maxRun: number): Promise<string> {
    const name = `relay-${++started}`
    const orders: RelayOrders = {
      name,
      databaseUrl: parts.databaseUrl,
      redisUrl: broker.url,
      seed: options.seed,
      maxRun,
      rejected: options.rejected,
      unavailable: options.unavailable,
      leaseMs: options.leaseMs,
      backoffMs: options.backoffMs,
    }
    const member = startRelay(orders, {
      broker,
      hear(from, news) {
        if (news.kind === 'claim') decide(from, maxRun, news)
        else hear(from, news)
      },
    })
    members.set(name, member)
    void member.gone.then((how) => {
      members.delete(name)
      if (!dying.has(name) && (how !== '0' || !stopping)) troubles.push(`${name} ended with ${how}`)
    })
    await member.started
    for (const fault of plan.armed) member.send({ kind: 'arm', fault })
    return name
  }

  function hear(member: Member<ToRelay>, message: Exclude<RelayNews, { kind: 'claim' }>): void {
    if (message.kind === 'answered') {
      answers.add(member.name, message)
      for (const eventId of message.acknowledged) acknowledged.add(eventId)
      for (const fault of plan.due(acknowledged.size)) {
        for (const each of members.values()) each.send({ kind: 'arm', fault })
      }
    } else if (message.kind === 'remark') say(`${member.name} ${message.what}`)
    else if (message.kind === 'lease-lost') {
      say(`${member.name} lost its lease`)
      pending.push(noteLeaseLoss(member.name))
    } else if (message.kind === 'trouble') trouble(member.name, message.what)
    else if (message.kind === 'failed') trouble(member.name, `gave up event ${message.eventId}: ${message.why}`)
    else if (message.kind === 'stopped' && message.left.length > 0)
      trouble(member.name, `left ${message.left.join(', ')} when it stopped`)
  }

  function trouble(relay: string, what: string): void {
    say(`${relay} ${what}`)
    troubles.push(`${relay} ${what}`)
  }

  function decide(
    member: Member<ToRelay>,
    maxRun: number,
    { fault, claim, eventIds }: Extract<FromRelay, { kind: 'claim' }>,
  ): void {
    const granted = plan.grant(fault)
    if (granted && fault === 'kill') {
      // The broker has these events, the database does not know, and other runs of this relay are on their way.
      dying.add(member.name)
      member.kill()
      say(`killed ${member.name} with ${eventIds.length} events between acknowledgement and settle`)
      const replaced = replace(member, maxRun)
      // A stand that is ended meanwhile waits for nobody, and then nobody would hear of it.
      replaced.catch(() => undefined)
      pending.push(replaced)
      return
    }
    if (granted) {
      say(`lost an acknowledgement of ${eventIds.length} events to ${member.name}`)
      lostAcks.push({ relay: member.name, eventIds })
    }
    member.send({ kind: 'granted', claim, granted })
    // Whoever is refused may claim the next one.
    if (!granted && plan.armed.includes(fault)) member.send({ kind: 'arm', fault })
  }

  /** The lease ran out before the relay noticed, but not longer ago than a lease. */
  async function noteLeaseLoss(relay: string): Promise<void> {
    departures.push({ relay, how: 'lost its lease', at: (await databaseTime(db)) - BigInt(options.leaseMs) * 1000n })
  }

  async function replace(member: Member<ToRelay>, maxRun: number): Promise<void> {
    await member.gone
    await sessionsEnded(db, member.name)
    departures.push({ relay: member.name, how: 'killed', at: await databaseTime(db) })
    say(`${await startOne(maxRun)} replaces ${member.name}`)
  }

  return {
    answers,
    departures,
    lostAcks,
    troubles,
    get acknowledged() {
      return acknowledged.size
    },
    async start() {
      await Promise.all(
        Array.from({ length: options.relays }, (_, index) => startOne(maxRuns[index % maxRuns.length] ?? 1)),
      )
    },
    async settled() {
      await Promise.all(pending)
    },
    async stop() {
      stopping = true
      const all = [...members.values()]
      for (const member of all) member.send({ kind: 'stop' })
      await Promise.all(all.map(({ gone }) => gone))
    },
    async kill() {
      stopping = true
      const all = [...members.values()]
      for (const member of all) {
        dying.add(member.name)
        member.kill()
      }
      await Promise.all(all.map(({ gone }) => gone))
    },
  }
}

interface FaultSchedule {
  /** Faults that a relay may claim now. */
  readonly armed: readonly RareFault[]
  /** Faults whose time has come with this many events acknowledged. */
  due(acknowledged: number): RareFault[]
  /** Whether the claim is the first for a fault that is armed. */
  grant(fault: RareFault): boolean
}

/** Spreads the rare faults over the first half of the events, so that enough is left for each to be felt. */
function planFaults({ events, lostAcks, kill }: StandOptions): FaultSchedule {
  const faults: RareFault[] = [...Array<RareFault>(lostAcks).fill('lost-ack'), ...Array<RareFault>(kill).fill('kill')]
  // Alternating as far as both last.
  const turn = (fault: RareFault, index: number): number =>
    fault === 'kill' ? (index - lostAcks + 0.5) / kill : (index + 0.5) / lostAcks
  const planned = faults
    .map((fault, index) => ({ fault, at: Math.floor(turn(fault, index) * 0.5 * events) }))
    .toSorted((a, b) => a.at - b.at)
  const armed: RareFault[] = []
  return {
    armed,
    due(acknowledged) {
      const now = planned.filter(({ at }) => at <= acknowledged).map(({ fault }) => fault)
      planned.splice(0, now.length)
      armed.push(...now)
      return now
    },
    grant(fault) {
      const index = armed.indexOf(fault)
      if (index !== -1) armed.splice(index, 1)
      return index !== -1
    },
  }
}
