import { describe, expect, it } from 'vitest'
import { OutboxError } from '../../src/contract/errors.ts'
import { readRelayOptions, type RelayOptions } from '../../src/options.ts'
import type { Relay } from '../../src/relay/relay.ts'
import type { RelayStand } from '../support/relay-stand.ts'
import { sharedStand } from '../support/shared-stand.ts'
import { testPublisher } from '../support/test-publisher.ts'

const shared = sharedStand()

const publisher = testPublisher((run) => ({ acknowledged: run.length }))
const numeric = Object.entries(readRelayOptions({ publisher }))
  .filter(([, value]) => typeof value === 'number')
  .map(([name]) => name as keyof RelayOptions)

const unreadable = {
  valueOf(): never {
    throw new Error('do not touch')
  },
}
const never = [
  NaN,
  -1,
  -Infinity,
  -1e308,
  -Number.MIN_VALUE,
  '5',
  true,
  1n,
  Symbol('5'),
  [],
  {},
  new Date(),
  unreadable,
]
const limits = [
  0,
  Number.MIN_VALUE,
  0.5,
  1,
  10,
  100,
  300,
  1000,
  1_000_000,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 53,
  1e308,
  Infinity,
]

/** The relay with this option, or undefined when it is refused by name; no other refusal is allowed. */
function relayWith(stand: RelayStand, name: keyof RelayOptions, value: unknown): Relay | undefined {
  // What an option must not be below or above is moved out of its way.
  const others = { pollMaxMs: 'pollMinMs', backoffCapMs: 'backoffBaseMs', breakerMaxMs: 'breakerMinMs' } as const
  const least = name in others ? { [others[name as keyof typeof others]]: value } : {}
  try {
    return stand.relay({ ...least, [name]: value })
  } catch (error) {
    if (!(error instanceof OutboxError) || error.code !== 'OPTIONS_INVALID') throw error
    expect(error.problems.map(({ path }) => path)).toContain(name)
    expect(error.message).toContain(name)
    return undefined
  }
}

describe('a number of a relay’s options', () => {
  it('is refused by name where it is none, or below zero', () => {
    const { stand } = shared
    expect(numeric.length).toBeGreaterThan(18)
    for (const name of numeric)
      for (const value of never) expect(relayWith(stand, name, value), `${name} ${typeof value}`).toBeUndefined()
  })

  it.each(numeric)(
    '%s: whatever is taken, a relay publishes, retries and stops with',
    async (name) => {
      const poisoned = new Set<string>()
      const { stand } = shared
      shared.answer = ({ eventId, headers }) => {
        if (headers['poison'] !== 'true' || poisoned.has(eventId)) return undefined
        poisoned.add(eventId)
        return { kind: 'rejected', cause: 'not yet', retryAfterMs: 0 }
      }
      let runs = 0
      for (const value of limits) {
        // Shorter ones are taken too, but a busy machine cannot keep them.
        if (value < 10_000 && (name === 'leaseMs' || name === 'statementTimeoutMs')) continue
        const relay = relayWith(stand, name, value)
        if (relay === undefined) continue
        runs += 1
        const before = stand.delivered.length
        await stand.enqueue(
          { payload: '1', headers: { poison: true } },
          { payload: '2' },
          { key: 'large', payload: Buffer.alloc(20_000, 'x') },
          { key: null, payload: '3' },
        )
        // An event that may have only one attempt is given up with it.
        const kept = name === 'maxAttempts' && value === 1 ? 3 : 4
        await relay.start()
        await stand.deliveries(before + kept)
        await relay.stop()
        const own = stand.delivered.slice(before).filter((payload) => payload === '1' || payload === '2')
        expect([name, value, own]).toEqual([name, value, kept === 4 ? ['1', '2'] : ['2']])
      }
      expect(runs).toBeGreaterThan(1)
      expect((await stand.states())['pending']).toBeUndefined()
    },
    60_000,
  )
})
