import { describe, expect, it } from 'vitest'
import type { Operator } from '../../src/operate/operator.ts'
import { failed, insertEvents, operatorStand, published } from '../support/operator-stand.ts'

// As a program has it whose variable was never set.
const nothing = { topic: undefined } as object

const verbs: readonly [string, (operator: Operator) => Promise<unknown>][] = [
  ['requeue', (operator) => operator.requeue(nothing)],
  ['discard', (operator) => operator.discard(nothing)],
  ['reschedule', (operator) => operator.reschedule(nothing, { at: 'now' })],
  ['replay', (operator) => operator.replay(nothing)],
]

describe('with a filter that names nothing,', () => {
  it.each(verbs)('%s is refused, and changes nothing', async (_, run) => {
    await using stand = await operatorStand()
    await insertEvents(stand.pool, 3, failed)
    await insertEvents(stand.pool, 3, published)
    await insertEvents(stand.pool, 3, { status: `'scheduled'`, available_at: `now() + interval '1 minute'` })
    const contents = await stand.contents()
    await expect(run(stand.operator)).rejects.toMatchObject({ code: 'FILTER_EMPTY' })
    expect(await stand.contents()).toEqual(contents)
  })
})
