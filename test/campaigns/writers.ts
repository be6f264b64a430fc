import { type Member, startMember } from '../stand/members.ts'
import type { Random } from '../stand/random.ts'
import type { FaultLog } from './faults.ts'
import { createLedger, type FromWriter, type Ledger, type WriterOrders } from './ledger.ts'
import type { StageOptions } from './stage-options.ts'

/** The writer processes of a campaign, and the ledger of what they wrote. */
export interface WriterCrew {
  readonly ledger: Ledger
  readonly names: readonly string[]
  /** What should not have happened. */
  readonly troubles: readonly string[]
  /** Starts one more; resolves when it writes. */
  start(): Promise<string>
  /** Resolves when so many more transactions are committed. */
  written(transactions: number): Promise<void>
  /**
   * SIGKILL in the middle of whatever it does, or just as its next COMMIT is sent. Resolves when it is gone and everything
   * it said was heard.
   */
  kill(name: string, when: 'now' | 'at commit'): Promise<void>
  /** Resolves when every hand has ended its transaction. */
  stop(): Promise<void>
  /** Ends what still runs. */
  end(): Promise<void>
}

const program = new URL('./writer-process.ts', import.meta.url)

export function createWriters(
  options: StageOptions,
  parts: { databaseUrl: string; random: Random; faults: FaultLog },
): WriterCrew {
  const ledger = createLedger()
  const members = new Map<string, Member<{ kind: 'stop' }>>()
  const troubles: string[] = []
  const dying = new Set<string>()
  /** Those that die as soon as they tell of a COMMIT. */
  const doomed = new Set<string>()
  const waiters = new Set<() => void>()
  let started = 0
  let transactions = 0

  function hear(name: string, news: Exclude<FromWriter, { kind: 'started' }>): void {
    ledger.hear(news)
    if (news.kind === 'committing' && doomed.has(name)) members.get(name)?.kill()
    if (news.kind !== 'committed') return
    transactions += 1
    for (const check of waiters) check()
  }

  async function start(): Promise<string> {
    const name = `writer-${++started}`
    const orders: WriterOrders = { ...options, name, databaseUrl: parts.databaseUrl, seed: parts.random.below(1e9) }
    let atWork = (): void => undefined
    const began = new Promise<void>((resolve) => (atWork = resolve))
    const member = startMember<{ kind: 'stop' }>(program, orders, (given) => {
      const news = given as FromWriter
      if (news.kind === 'started') atWork()
      else hear(name, news)
    })
    members.set(name, member)
    const gone = member.gone.then((how) => {
      members.delete(name)
      if (how !== '0' && !dying.has(name)) troubles.push(`${name} ended with ${how}`)
    })
    await Promise.race([began, gone])
    return name
  }

  async function kill(name: string, when: 'now' | 'at commit'): Promise<void> {
    const member = members.get(name)
    if (member === undefined) return
    dying.add(name)
    if (when === 'now') member.kill()
    else doomed.add(name)
    await member.gone
    parts.faults.strike('writer killed', name)
  }

  return {
    ledger,
    troubles,
    get names() {
      return [...members.keys()]
    },
    start,
    written(more) {
      const wanted = transactions + more
      return new Promise((resolve) => {
        const check = (): void => {
          if (transactions < wanted) return
          waiters.delete(check)
          resolve()
        }
        waiters.add(check)
      })
    },
    kill,
    async stop() {
      doomed.clear()
      const all = [...members.values()]
      for (const member of all) member.send({ kind: 'stop' })
      await Promise.all(all.map(({ gone }) => gone))
    },
    async end() {
      const all = [...members.values()]
      for (const member of all) {
        dying.add(member.name)
        member.kill()
      }
      await Promise.all(all.map(({ gone }) => gone))
    },
  }
}
