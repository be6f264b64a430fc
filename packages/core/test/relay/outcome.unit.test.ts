import { describe, expect, it } from 'vitest'
import type { FailureKind } from '../../src/contract/publisher.ts'
import { readOutcome } from '../../src/relay/outcome.ts'

const failure = (kind: string): { kind: FailureKind; cause: string } => ({ kind: kind as FailureKind, cause: 'x' })

describe('an answer that the contract allows is taken as it is:', () => {
  it('the whole run', () => {
    expect(readOutcome({ acknowledged: 3 }, 3)).toEqual({ acknowledged: 3 })
    expect(readOutcome({ acknowledged: 3, receipts: [] }, 3)).toEqual({ acknowledged: 3 })
  })

  it.each(['rejected', 'permanent', 'transient', 'unavailable', 'unknown'])(
    'a prefix and a failure that is %s',
    (kind) => {
      for (const acknowledged of [0, 2])
        expect(readOutcome({ acknowledged, failure: failure(kind) }, 3)).toEqual({
          acknowledged,
          failure: failure(kind),
        })
    },
  )
})

describe('an answer outside the contract is unknown for the whole run, and a fault of the adapter:', () => {
  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['text', 'ok'],
    ['no count', {}],
    ['a count that is text', { acknowledged: '3' }],
    ['a count that is no number', { acknowledged: Number.NaN }],
    ['a count below none', { acknowledged: -1, failure: failure('rejected') }],
    ['half an event', { acknowledged: 1.5, failure: failure('rejected') }],
    ['more than was given', { acknowledged: 4 }],
    ['without end', { acknowledged: Infinity }],
    ['everything, and a failure', { acknowledged: 3, failure: failure('rejected') }],
    ['less, and no failure', { acknowledged: 2 }],
    ['a failure of another kind', { acknowledged: 2, failure: failure('lost') }],
    ['a failure that is named like a member of objects', { acknowledged: 2, failure: failure('constructor') }],
    ['a failure that is text', { acknowledged: 2, failure: 'rejected' }],
  ])('%s', (_, answer) => {
    const outcome = readOutcome(answer, 3)
    expect(outcome).toMatchObject({ acknowledged: 0, failure: { kind: 'unknown', cause: expect.any(Error) as Error } })
    expect(outcome.fault).toMatch(/^the publisher /)
  })
})
