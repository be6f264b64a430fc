import { afterAll, afterEach, beforeAll } from 'vitest'
import type { Publisher } from '../../src/contract/publisher.ts'
import { type Answer, type RelayStand, relayStand } from './relay-stand.ts'

/** A stand for all tests of a file, empty at the beginning of each. A test may give the broker an answer of its own. */
export interface SharedStand {
  readonly stand: RelayStand
  answer: Answer
}

/** Its database is made once: with a hundred small tests that is most of the time. */
export function sharedStand(publisher: Partial<Publisher> = {}): SharedStand {
  let stand: RelayStand | undefined
  const shared: { answer: Answer; readonly stand: RelayStand } = {
    answer: () => undefined,
    get stand() {
      if (stand === undefined) throw new Error('there is no stand outside a test')
      return stand
    },
  }
  beforeAll(async () => {
    stand = await relayStand((event, tries) => shared.answer(event, tries), publisher)
  })
  afterEach(async () => {
    shared.answer = () => undefined
    if (stand === undefined) return
    for (const kept of [stand.delivered, stand.events, stand.signals]) kept.length = 0
    for (const table of ['events', 'failures', 'relays', 'slots', 'group_topics'])
      await stand.pool.query(`delete from outbox.${table}`)
  })
  afterAll(() => stand?.[Symbol.asyncDispose]())
  return shared
}
