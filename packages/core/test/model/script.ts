import fc from 'fast-check'
import type { FailureKind } from '../../src/contract/publisher.ts'
import type { Fate, Stretch, Where } from './wire.ts'

/** An event to write. Few topics and keys, so that most events meet others in their lane. */
export interface EventChoice {
  readonly topic: 'a' | 'b'
  readonly key: 'x' | 'y' | null
  readonly ordering: 'none' | 'total' | undefined
  readonly later: boolean
}

/** Numbers pick one of what there is at that moment, counted round and round. */
export type Step =
  | { readonly do: 'write'; readonly writer: number; readonly event: EventChoice }
  | { readonly do: 'commit' | 'roll back'; readonly writer: number }
  | { readonly do: 'place'; readonly event: EventChoice }
  | {
      readonly do: 'look'
      readonly relay: number
      readonly hold: { readonly stretch: 'find' | 'sweep'; readonly where: Where } | undefined
    }
  | { readonly do: 'go on'; readonly relay: number; readonly held: number }
  | {
      readonly do: 'answer'
      readonly call: number
      readonly acknowledged: number
      readonly failure: FailureKind | 'broker unavailable' | 'thrown' | undefined
      readonly beyond: number
      readonly settle: Fate | undefined
    }
  | { readonly do: 'beat' | 'start' | 'leave'; readonly relay: number }
  | { readonly do: 'expire'; readonly relay: number }
  | { readonly do: 'crash'; readonly relay: number; readonly arrived: number }
  | { readonly do: 'cut'; readonly relay: number; readonly stretch: Stretch }
  | { readonly do: 'pass'; readonly hours: number }
  | { readonly do: 'skew'; readonly hours: number }
  | { readonly do: 'hold' | 'release'; readonly topic: 'a' | 'b'; readonly key: 'x' | 'y' | undefined }
  | { readonly do: 'requeue'; readonly topic: 'a' | 'b' }
  | { readonly do: 'discard' | 'replay'; readonly event: number }
  | { readonly do: 'delete' | 'revive' | 'fail'; readonly event: number }
  | { readonly do: 'reschedule'; readonly event: number; readonly later: boolean }
  | { readonly do: 'purge' }
  | { readonly do: 'rest' }

type Matching<S, K> = S extends { readonly do: infer D } ? (K extends D ? S : never) : never

/** The shape of the steps that do this. */
export type StepOf<K extends Step['do']> = Matching<Step, K>

/** How the relays of a script are set up. */
export interface Setup {
  readonly maxRun: number
  readonly findLimit: number
  readonly maxAttempts: number
  readonly onExhausted: 'continue' | 'hold'
  readonly retain: boolean
}

export interface Script {
  readonly setup: Setup
  readonly steps: readonly Step[]
}

const topic = fc.constantFrom('a' as const, 'b' as const)
const small = fc.nat({ max: 3 })
const relay = fc.nat({ max: 1 })
const event: fc.Arbitrary<EventChoice> = fc.record({
  topic: fc.oneof(
    { weight: 4, arbitrary: fc.constant('a' as const) },
    { weight: 1, arbitrary: fc.constant('b' as const) },
  ),
  key: fc.oneof(
    { weight: 6, arbitrary: fc.constant('x' as const) },
    { weight: 3, arbitrary: fc.constant('y' as const) },
    { weight: 1, arbitrary: fc.constant(null) },
  ),
  ordering: fc.oneof(
    { weight: 12, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constantFrom('none' as const, 'total' as const) },
  ),
  later: fc.oneof({ weight: 8, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
})
const one = <T extends Step['do']>(name: T): fc.Arbitrary<T> => fc.constant(name)
const any = <T extends Step['do']>(...names: [T, ...T[]]): fc.Arbitrary<T> => fc.constantFrom(...names)
const mostly = <T>(usual: fc.Arbitrary<T>, rare: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 4, arbitrary: usual }, { weight: 1, arbitrary: rare })

const steps: readonly (readonly [weight: number, step: fc.Arbitrary<Step>])[] = [
  [10, fc.record({ do: one('place'), event })],
  [7, fc.record({ do: one('write'), writer: fc.nat({ max: 2 }), event })],
  [6, fc.record({ do: one('commit'), writer: fc.nat({ max: 2 }) })],
  [1, fc.record({ do: one('roll back'), writer: fc.nat({ max: 2 }) })],
  [
    18,
    fc.record({
      do: one('look'),
      relay,
      hold: mostly<{ stretch: 'find' | 'sweep'; where: Where } | undefined>(
        fc.constant(undefined),
        fc.record({
          stretch: mostly<'find' | 'sweep'>(fc.constant('find'), fc.constant('sweep')),
          where: mostly<Where>(fc.constant('unanswered'), fc.constant('unsent')),
        }),
      ),
    }),
  ],
  [8, fc.record({ do: one('go on'), relay, held: small })],
  [
    14,
    fc.record({
      do: one('answer'),
      call: small,
      acknowledged: small,
      failure: fc.oneof(
        { weight: 4, arbitrary: fc.constant(undefined) },
        {
          weight: 3,
          arbitrary: fc.constantFrom(
            ...([
              'rejected',
              'rejected',
              'rejected',
              'permanent',
              'unavailable',
              'unknown',
              'unknown',
              'broker unavailable',
              'thrown',
            ] as const),
          ),
        },
      ),
      beyond: small,
      settle: mostly<Fate | undefined>(
        fc.constant(undefined),
        fc.constantFrom(...(['unsent', 'unsent', 'unanswered', 'unanswered', 'lost'] as const)),
      ),
    }),
  ],
  [3, fc.record({ do: any('beat', 'expire', 'start', 'start'), relay })],
  [1, fc.record({ do: one('leave'), relay })],
  [2, fc.record({ do: one('crash'), relay, arrived: small })],
  [1, fc.record({ do: one('cut'), relay, stretch: fc.constantFrom('find' as const, 'settle' as const) })],
  [3, fc.record({ do: one('pass'), hours: fc.constantFrom(1, 3) })],
  [1, fc.record({ do: one('skew'), hours: fc.constantFrom(-30, 30) })],
  [
    4,
    fc.record({
      do: any('hold', 'release', 'release'),
      topic,
      key: fc.constantFrom('x' as const, undefined),
    }),
  ],
  [3, fc.record({ do: one('requeue'), topic })],
  [3, fc.record({ do: any('discard', 'replay'), event: fc.nat({ max: 9 }) })],
  [1, fc.record({ do: any('delete', 'revive', 'fail'), event: fc.nat({ max: 9 }) })],
  [2, fc.record({ do: one('reschedule'), event: fc.nat({ max: 9 }), later: fc.boolean() })],
  [1, fc.record({ do: one('purge') })],
  [2, fc.record({ do: one('rest') })],
]

export const script: fc.Arbitrary<Script> = fc.record({
  setup: fc.record({
    maxRun: fc.constantFrom(100, 2, 1),
    findLimit: fc.constantFrom(1000, 1000, 2),
    maxAttempts: fc.constantFrom(2, 1),
    onExhausted: fc.constantFrom('continue' as const, 'hold' as const),
    retain: fc.constantFrom(true, true, false),
  }),
  steps: fc.array(fc.oneof(...steps.map(([weight, arbitrary]) => ({ weight, arbitrary }))), {
    maxLength: 50,
    size: 'max',
  }),
})
