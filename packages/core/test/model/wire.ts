import type { RowSet, SqlConnector, Statement } from '../../src/contract/sql-client.ts'
import { purposeOf } from '../support/around-statements.ts'
import type { Lent } from './stash.ts'
import type { Traffic } from './traffic.ts'

/** What a relay asks the database for, as far as a script can hold it up. */
export type Stretch = 'find' | 'sweep' | 'settle'

/** Where a statement is held: before it reaches the server, or with its answer on the way back. */
export type Where = 'unsent' | 'unanswered'

/** How the next statement fares: it is held, or its answer and its connection are lost. */
export type Fate = Where | 'lost'

export interface Held {
  readonly stretch: Stretch
  readonly where: Where
}

/** All connections of one relay process. */
export interface Wire extends SqlConnector {
  /** What happens to the next statement of this kind; `undefined` lets it through again. */
  next(stretch: Stretch, fate: Fate | undefined): void
  /** Whether what `next` said has not happened yet. */
  armed(stretch: Stretch): boolean
  readonly held: readonly Held[]
  /** What is held goes on. */
  release(held: Held): void
  /** Breaks the connection on which this was asked last, with whatever is held on it. */
  cut(stretch: Stretch): void
  /** Resolves when a statement of this kind has reached the server and its answer is not lost. */
  reached(stretch: Stretch): Promise<void>
  /** Every connection breaks and none opens any more. */
  die(): void
}

interface HeldStatement extends Held {
  readonly link: Lent
  readonly go: () => void
  readonly fail: (cause: Error) => void
}

/** Runs a statement and keeps the model in step with it. */
export type Observe = (statement: Statement, run: () => Promise<RowSet>) => Promise<RowSet>

export function createWire(stash: { connect(): Promise<Lent> }, traffic: Traffic, observe: Observe): Wire {
  const open = new Set<Lent>()
  const fates = new Map<Stretch, Fate>()
  const lastUsed = new Map<Stretch, Lent>()
  const waiting = new Map<Stretch, () => void>()
  let held: HeldStatement[] = []
  let dead = false

  function hold(stretch: Stretch, where: Where, link: Lent): Promise<void> {
    return new Promise((resolve, reject) => {
      held.push({ stretch, where, link, go: resolve, fail: reject })
    })
  }

  function takeFate(stretch: Stretch | undefined): Fate | undefined {
    if (stretch === undefined) return undefined
    const fate = fates.get(stretch)
    fates.delete(stretch)
    return fate
  }

  async function send(statement: Statement, link: Lent): Promise<RowSet> {
    const stretch = stretchOf(statement)
    const fate = takeFate(stretch)
    if (stretch !== undefined) lastUsed.set(stretch, link)
    if (stretch !== undefined && fate === 'unsent') await hold(stretch, fate, link)
    const answer = await traffic.run(() => observe(statement, () => link.run(statement)))
    if (fate === 'lost') {
      link.sever()
      throw new Error('the connection broke before the answer came')
    }
    if (stretch !== undefined) waiting.get(stretch)?.()
    if (stretch !== undefined && fate === 'unanswered') await hold(stretch, fate, link)
    return answer
  }

  function sever(link: Lent): void {
    link.sever()
    const lost = held.filter((each) => each.link === link)
    held = held.filter((each) => each.link !== link)
    for (const { fail } of lost) fail(new Error('the connection broke'))
  }

  return {
    async connect() {
      if (dead) throw new Error('this relay is dead')
      const link = await traffic.run(() => stash.connect())
      open.add(link)
      void link.ended.then(() => open.delete(link))
      return { ended: link.ended, close: () => link.close(), run: (statement) => send(statement, link) }
    },
    next(stretch, fate) {
      if (fate === undefined) fates.delete(stretch)
      else fates.set(stretch, fate)
    },
    armed: (stretch) => fates.has(stretch),
    get held() {
      return held
    },
    release(given) {
      const statement = held.find((each) => each === given)
      held = held.filter((each) => each !== given)
      statement?.go()
    },
    cut(stretch) {
      const link = lastUsed.get(stretch)
      if (link !== undefined) sever(link)
    },
    reached: (stretch) =>
      new Promise((resolve) => {
        waiting.set(stretch, () => {
          waiting.delete(stretch)
          resolve()
        })
      }),
    die() {
      dead = true
      for (const link of [...open]) sever(link)
    },
  }
}

function stretchOf(statement: Statement): Stretch | undefined {
  const purpose = purposeOf(statement)
  if (purpose === 'acknowledge' || purpose === 'settle') return 'settle'
  return purpose === 'find' || purpose === 'sweep' ? purpose : undefined
}
