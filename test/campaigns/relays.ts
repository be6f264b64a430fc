import { type AnswerCounts, countAnswers } from '../stand/attempts.ts'
import type { Departure } from '../stand/explain.ts'
import type { Look, RelayOrders } from '../stand/messages.ts'
import { type RelayMember, type RelayNews, startRelay } from '../stand/relay-member.ts'
import type { StandBroker } from '../stand/stand-broker.ts'
import { type FaultLog, wallTime } from './faults.ts'
import type { StageOptions } from './stage-options.ts'

/** The relay processes of a campaign: who they are, what they answered, and what befell them. */
export interface RelayCrew {
  readonly answers: AnswerCounts
  /** Different events that were acknowledged to some relay. */
  readonly acknowledged: number
  readonly departures: readonly Departure[]
  /** Events that relays gave up, with why. */
  readonly failed: ReadonlyMap<string, string>
  /** When each relay that stopped had nothing in flight any more. */
  readonly stopped: ReadonlyMap<string, bigint>
  /** What should not have happened. */
  readonly troubles: readonly string[]
  /** Relays that are at work, oldest first. */
  readonly names: readonly string[]
  /** Those that have been at work for so long, in ms. */
  longerThan(ms: number): string[]
  /** Starts one more; resolves when it is at work. */
  start(): Promise<string>
  /** SIGKILL. Resolves when it is gone and everything it said was heard. */
  kill(name: string): Promise<void>
  /** SIGSTOP and SIGCONT. */
  pause(name: string): void
  resume(name: string): void
  /** Resolves when it has stopped by itself. */
  stop(name: string): Promise<void>
  look(): Promise<ReadonlyMap<string, Look>>
  /** Ends what still runs. */
  end(): Promise<void>
}

export interface RelayCrewParts {
  readonly databaseUrl: string
  readonly broker: StandBroker
  readonly seed: number
  readonly faults: FaultLog
  readonly say: (line: string) => void
}

/** In turn, so that relays which read and publish in other portions take over from each other. */
const portions = [
  { maxRun: 20, findLimit: 1000, maxInFlight: 10_000 },
  { maxRun: 5, findLimit: 5, maxInFlight: 50 },
  { maxRun: 100, findLimit: 50, maxInFlight: 1000 },
] as const

export function createRelays(options: StageOptions, parts: RelayCrewParts): RelayCrew {
  const { faults, say } = parts
  const members = new Map<string, RelayMember>()
  /** Since when each is at work. */
  const atWork = new Map<string, number>()
  const paused = new Map<string, () => void>()
  const answers = countAnswers()
  const acknowledged = new Set<string>()
  const departures: Departure[] = []
  const failed = new Map<string, string>()
  const stopped = new Map<string, bigint>()
  const troubles: string[] = []
  const lookers = new Map<string, (look: Look) => void>()
  /** Those whose end is no surprise. */
  const leaving = new Set<string>()
  let started = 0
  let ending = false

  const microseconds = (ms: number): bigint => BigInt(ms) * 1000n
  const leaseTime = microseconds(options.leaseMs)
  /** A publish that had begun before is over by then, whatever it waits for. */
  const publishTime = microseconds(options.publishTimeoutMs + 1000)

  async function start(): Promise<string> {
    const number = started++
    const name = `relay-${number + 1}`
    const { maxRun, ...limits } = portions[number % portions.length] ?? portions[0]
    const orders: RelayOrders = {
      name,
      databaseUrl: parts.databaseUrl,
      redisUrl: parts.broker.url,
      seed: parts.seed,
      maxRun,
      rejected: options.rejected,
      unavailable: options.unavailable,
      leaseMs: options.leaseMs,
      backoffMs: 50,
      relayOptions: {
        publishTimeoutMs: options.publishTimeoutMs,
        statementTimeoutMs: options.statementTimeoutMs,
        ...limits,
      },
      ...(options.lies === undefined ? {} : { lies: options.lies }),
    }
    const member = startRelay(orders, {
      broker: parts.broker,
      hear: (from, news) => {
        hear(from.name, news)
      },
      nodeOptions: ['--expose-gc', ...skew(options.skewMs[number % Math.max(1, options.skewMs.length)])],
    })
    members.set(name, member)
    void member.gone.then((how) => {
      ended(name, how)
    })
    await member.started
    atWork.set(name, performance.now())
    return name
  }

  function ended(name: string, how: string): void {
    members.delete(name)
    atWork.delete(name)
    lookers.delete(name)
    paused.get(name)?.()
    if (leaving.has(name)) return
    if (options.supervised && how === 'SIGKILL') {
      depart(name, 'killed', wallTime() - leaseTime)
      faults.strike('relay crashed', name)
      if (!ending) void start().catch((error: unknown) => troubles.push(String(error)))
    } else troubles.push(`${name} ended with ${how}`)
  }

  function depart(relay: string, how: Departure['how'], at: bigint, until?: bigint): void {
    departures.push({ relay, how, at, ...(until === undefined ? {} : { until }) })
  }

  function hear(relay: string, news: RelayNews): void {
    if (news.kind === 'answered') {
      answers.add(relay, news, wallTime())
      for (const eventId of news.acknowledged) acknowledged.add(eventId)
    } else if (news.kind === 'lease-lost') loseLease(relay, 'lost its lease')
    else if (news.kind === 'failed') failed.set(news.eventId, news.why)
    else if (news.kind === 'looked') lookers.get(relay)?.(news)
    else if (news.kind === 'trouble') {
      say(`${relay} ${news.what}`)
      if (!isAboutTheBroker(news.what)) troubles.push(`${relay} ${news.what}`)
    } else if (news.kind === 'stopped') {
      stopped.set(relay, wallTime())
      if (!news.leaseHeld) loseLease(relay, 'stopped')
      if (news.left.length > 0) troubles.push(`${relay} left ${news.left.join(', ')} when it stopped`)
    }
  }

  /**
   * Others may have acted since the lease ran out: up to a lease ago, or since the fault began for which the relay could
   * not renew. What the relay began before it knew may arrive after that.
   */
  function loseLease(relay: string, how: 'lost its lease' | 'stopped'): void {
    const now = wallTime()
    const since = now - leaseTime
    const fault = faults.earliest(relay, since - leaseTime)
    depart(relay, how, fault !== undefined && fault < since ? fault : since, now + publishTime)
  }

  return {
    answers,
    departures,
    failed,
    stopped,
    troubles,
    get acknowledged() {
      return acknowledged.size
    },
    get names() {
      return [...atWork.keys()]
    },
    longerThan: (ms) => [...atWork].filter(([, since]) => performance.now() - since > ms).map(([name]) => name),
    start,
    async kill(name) {
      const member = members.get(name)
      if (member === undefined) return
      leaving.add(name)
      atWork.delete(name)
      faults.strike('relay killed', name)
      depart(name, 'killed', wallTime())
      member.kill()
      await member.gone
    },
    pause(name) {
      members.get(name)?.pause()
      if (!paused.has(name)) paused.set(name, faults.begin('relay paused', name))
    },
    resume(name) {
      members.get(name)?.resume()
      paused.get(name)?.()
      paused.delete(name)
    },
    async stop(name) {
      const member = members.get(name)
      if (member === undefined) return
      leaving.add(name)
      atWork.delete(name)
      member.send({ kind: 'stop' })
      const how = await member.gone
      if (how !== '0') troubles.push(`${name} ended with ${how} when it was told to stop`)
    },
    async look() {
      const looks = new Map<string, Look>()
      await Promise.all(
        [...atWork.keys()].map(async (name) => {
          const member = members.get(name)
          if (member === undefined) return
          const looked = new Promise<Look>((resolve) => lookers.set(name, resolve))
          member.send({ kind: 'look' })
          const answer = await Promise.race([looked, member.gone])
          if (typeof answer !== 'string') looks.set(name, answer)
        }),
      )
      return looks
    },
    async end() {
      ending = true
      const all = [...members.values()]
      for (const member of all) {
        leaving.add(member.name)
        member.kill()
      }
      await Promise.all(all.map(({ gone }) => gone))
    },
  }
}

function skew(ms: number | undefined): string[] {
  if (ms === undefined || ms === 0) return []
  return ['--import', new URL(`./skew-clock.mjs?ms=${ms}`, import.meta.url).href]
}

/** A publisher that hangs is replaced: no fault of the relay, and what its publish was about is unknown. */
function isAboutTheBroker(what: string): boolean {
  return what.startsWith('the publisher is replaced')
}
