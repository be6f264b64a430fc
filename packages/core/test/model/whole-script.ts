import fc from 'fast-check'
import type { FailureKind } from '../../src/contract/publisher.ts'

/** How the broker answers for the next events: takes them, or fails with or without having taken them. */
export type Mood = 'takes' | Exclude<FailureKind, 'permanent'> | 'loses the answer'

/** What happens beside relays that run by themselves. Numbers pick one of what there is, counted round and round. */
export type WholeStep =
  | { readonly do: 'write'; readonly keys: readonly string[]; readonly topic: string }
  | { readonly do: 'open'; readonly writer: number; readonly key: string; readonly topic: string }
  | { readonly do: 'commit' | 'roll back'; readonly writer: number }
  | { readonly do: 'mood'; readonly mood: Mood; readonly events: number }
  | { readonly do: 'restart' | 'expire'; readonly relay: number }
  | { readonly do: 'cut'; readonly session: number }
  | { readonly do: 'hold' | 'release'; readonly topic: string }
  | { readonly do: 'requeue' }
  | { readonly do: 'wait'; readonly finds: number }

const topic = fc.constantFrom('a', 'a', 'b')
const key = fc.constantFrom('x', 'x', 'y', 'z')
const writer = fc.nat({ max: 2 })
const one = <T extends WholeStep['do']>(name: T): fc.Arbitrary<T> => fc.constant(name)

const steps: readonly (readonly [weight: number, step: fc.Arbitrary<WholeStep>])[] = [
  [8, fc.record({ do: one('write'), keys: fc.array(key, { minLength: 1, maxLength: 4 }), topic })],
  [6, fc.record({ do: one('open'), writer, key, topic })],
  [5, fc.record({ do: one('commit'), writer })],
  [1, fc.record({ do: one('roll back'), writer })],
  [
    6,
    fc.record({
      do: one('mood'),
      mood: fc.constantFrom<Mood>('takes', 'rejected', 'unknown', 'unavailable', 'loses the answer'),
      events: fc.integer({ min: 1, max: 4 }),
    }),
  ],
  [2, fc.record({ do: fc.constantFrom('restart' as const, 'expire' as const), relay: fc.nat({ max: 1 }) })],
  [2, fc.record({ do: one('cut'), session: fc.nat({ max: 9 }) })],
  [2, fc.record({ do: fc.constantFrom('hold' as const, 'release' as const), topic })],
  [1, fc.record({ do: one('requeue') })],
  [6, fc.record({ do: one('wait'), finds: fc.integer({ min: 1, max: 3 }) })],
]

export const wholeScript: fc.Arbitrary<WholeStep[]> = fc.array(
  fc.oneof(...steps.map(([weight, arbitrary]) => ({ weight, arbitrary }))),
  { maxLength: 40, size: 'max' },
)
